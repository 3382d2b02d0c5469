"""The console in its two homes: `bergline serve`, and `bergline ui` over any lake."""

"""The console on the web: routing, sign-in and headers, in `bergline serve` and in `bergline ui` over any lake."""

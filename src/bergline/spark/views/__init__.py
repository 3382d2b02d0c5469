"""Views of lakes: what names in their queries mean, and how they are defined."""

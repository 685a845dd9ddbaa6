"""The same work elsewhere: encoding on a Ray cluster."""

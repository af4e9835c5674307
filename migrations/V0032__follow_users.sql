-- Proxies refuse tokens of people who were removed, so they follow who is active.
SELECT track_changes('users');

-- From where a login was begun (an IPv4 address, the /64 of an IPv6 one): when there are too many, the oldest of the same
-- place make room, and nobody else's.
ALTER TABLE login_attempts ADD COLUMN network text;

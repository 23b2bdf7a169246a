"""The command `millstream acl`: who may do what."""

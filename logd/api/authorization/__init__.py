"""Authorization: what each request needs a permission for, and what a peer without it is answered."""

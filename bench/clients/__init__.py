"""What sends the load: a client in C, compiled when it is needed, and the requests it sends."""

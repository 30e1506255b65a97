"""The servers that are measured, ours and the peers: real processes on free ports of loopback, one core each."""

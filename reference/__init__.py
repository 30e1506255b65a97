"""The reference documents that are made from code: docs/HTTP.md and docs/SDK.md. `make docs` writes them."""

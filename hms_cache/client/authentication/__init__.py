"""How a client shows metastores who it is: Kerberos, a password, a delegation token, a bearer token."""

"""Java's key stores.

`data/`: made by keytool and by Hadoop 3.4's `CredentialShell`, Java 17. The password of `chain.*` is `changeit`: a key,
its certificate and that of its authority, `ca.pem`. `passwords.jceks` has two passwords, and none of its own;
`protected.jceks` has one, and its own is `a good password`.
"""

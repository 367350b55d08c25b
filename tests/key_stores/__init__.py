"""Java's key stores.

The files in `data/` were made by keytool and by Hadoop 3.4's `CredentialShell`, with Java 17 (for passwords with
`jdk.jceks.iterationCount` at its least, 10,000, which makes the tests faster):

- `chain.*`: a key, its certificate and that of its authority, `ca.pem`. The password is `changeit`.
- `passwords.jceks`: two passwords of Hive's metastore. The key store has no password of its own.
- `users.jceks`: the password of the user ann, without one of its own.
- `protected.jceks`: a password of Hive's metastore. Its own is `a good password`.
"""

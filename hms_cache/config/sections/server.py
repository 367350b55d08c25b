"""The Thrift listener."""

from __future__ import annotations

import math
from ipaddress import ip_network
from typing import Literal, Self

from pydantic import SecretStr, model_validator

from hms_cache.config.quantities import OptionalPath, Seconds, SizeBytes, Words
from hms_cache.config.sections.listeners import (
    MAX_LISTENERS,
    OF_THE_SERVER,
    Listeners,
    ListenerSettings,
    problem_of_mechanisms,
)
from hms_cache.config.setting import Section, hive_setting, metastore_keys, setting


def _oldest_not_blacklisted(protocols: str) -> str:
    """Returns the oldest version that is not in Hive's blacklist, such as SSLv2,SSLv3,TLSv1. Like Java and Hive,
    ignores case."""
    blacklisted = {name.strip().lower() for name in protocols.split(",")}
    return "1.3" if "tlsv1.2" in blacklisted else "1.2"


class ServerSettings(Section):
    """The Thrift listener."""

    host: str = setting("127.0.0.1", site_keys=metastore_keys("thrift.bind.host"))
    """Address to listen on. Unless authentication is enabled, any client that can connect is trusted, so the default
    accepts connections of this machine only."""
    port: int = setting(
        9083,
        reason="Hive's port, which clients assume.",
        site_keys=("metastore.thrift.port", "hive.metastore.port"),
        ge=0,
        le=65535,
    )
    """Port to listen on; 0 picks a free one."""
    transport_mode: Literal["binary", "http"] = setting(
        "binary", site_keys=metastore_keys("server.thrift.transport.mode"), from_site=lambda mode: mode.strip().lower()
    )
    """binary: messages are sent directly over the connection, with or without SASL. http: each message is the body of a
    POST request, as Hive 4's clients send it with hive.metastore.client.thrift.transport.mode=http, and Trino with an
    http address."""
    http_path: str = setting("metastore", site_keys=metastore_keys("server.thrift.http.path"))
    """With transport_mode = http: the path of the URL."""
    http_max_header_bytes: SizeBytes = setting(
        32 * 1024,
        reason="It contains the bearer token; tokens of some issuers have 8 kB and more.",
        ge=1024,
        le=1024 * 1024,
    )
    """With transport_mode = http: maximum size of a request's header."""
    http_header_timeout_s: Seconds = setting(10.0, reason="As for a TLS handshake.", gt=0, le=3600)
    """With transport_mode = http: time within which a header must arrive completely after its first byte."""
    mechanisms: Words = setting(())
    """How clients of this port authenticate: kerberos (including delegation tokens), ldap, jwt, or none. Each mechanism
    must be configured in [authentication]. Empty: all mechanisms configured there; with listeners, those of them that
    transport_mode supports."""
    listeners: Listeners = setting((), reason="One port, as in Hive.", max_length=MAX_LISTENERS)
    """Further ports of this server, each a table [[server.listeners]]. All ports share the cache, the threads and all
    limits. In the environment and on the command line: a list in TOML."""
    advertised_uris: str = setting("", site_keys=("metastore.thrift.uris", "hive.metastore.uris"))
    """The URI under which clients reach this metastore, such as thrift://hms:9083. It is written into events. Empty:
    thrift://host:port."""
    workers: int = setting(
        1,
        reason="One process answers tens of thousands of cached calls per second. More processes use more processors.",
        ge=1,
        le=64,
    )
    """Number of processes that serve the port. Each is a complete server with its own cache and memory budget. Equal
    partitions are held in memory once (workers_share_memory); everything else is held by each process."""
    workers_share_memory: bool = setting(
        True, reason="Partitions take most of the memory of a large catalog, and the workers hold the same ones."
    )
    """Whether equal partitions of several workers are held in memory once, on systems with sealed files in memory
    (Linux). They count fully towards the budget of each worker."""
    worker_timeout_s: Seconds = setting(
        60.0,
        reason="The kernel keeps assigning connections to a process that hangs, and their clients wait until they"
        " give up. On a busy machine a loop waits for milliseconds; time in which the parent process does"
        " not run either is not counted.",
        ge=10,
    )
    """With several workers: a worker whose event loop has made no progress for this time is killed (SIGABRT, with the
    stacks of its threads on standard error) and replaced. A worker that is stopped by a signal or in a debugger, or
    that is starting or stopping, is not killed. inf: never."""
    threads: int = setting(
        16,
        reason="Calls wait for the database, not for the processor: more threads than database connections only queue"
        " there.",
        ge=1,
        le=1024,
    )
    """Number of threads for reads that need the database."""
    large_reply_threads: int = setting(
        4,
        reason="A reply of 40 MB occupies its thread for a second, and takes several times its size in memory."
        " Threads compute one at a time, so more of them would not be faster.",
        ge=1,
        le=1024,
    )
    """Maximum number of those threads that run calls with large replies at the same time. Further such calls wait, and
    other reads pass them."""
    large_reply_bytes: SizeBytes = setting(
        4 << 20, reason="Some thousand partitions; it takes some 100 ms of processor time.", ge=0
    )
    """Replies of this size or more are large. Calls with the same method, table and request size are then expected to
    have large replies, too, until eight in a row did not. 0: no reply is large."""
    transaction_threads: int = setting(
        16, reason="Such a call takes milliseconds, and waiting calls can share a transaction.", ge=1, le=256
    )
    """Number of threads for heartbeats, locks, transactions and write ids, which do not wait for other calls. Each has
    a database connection in addition to those of database.pool_size."""
    write_threads: int = setting(
        8,
        reason="Writers of one table wait for each other in the database; more threads would only wait there.",
        ge=1,
        le=256,
    )
    """Number of threads for changes of the catalog that move no data."""
    heavy_threads: int = setting(
        4, reason="Each of these calls may take minutes, and must leave connections for others.", ge=1, le=256
    )
    """Number of threads for calls that delete or move data, write many partitions, or list whole catalogs."""
    max_waiting_per_pool: int = setting(
        400, unit="calls", reason="If the queues of two pools are full, a fifth of max_in_flight remains.", ge=1
    )
    """Maximum number of calls that wait for a thread of one thread pool (transactions, reads, writes, heavy). Further
    calls get an error that tells the client to retry."""
    max_connections: int = setting(
        4096,
        unit="connections",
        reason="An idle connection costs a few KiB; Hive allows 1000 because each costs it a thread.",
        ge=1,
    )
    """Maximum number of open client connections. For a further connection, the server closes the oldest one that has
    never sent a call; if there is none, it refuses the new connection with an error. The limit is lower if the system
    allows fewer open files."""
    max_connections_per_address: int = setting(
        1024,
        unit="connections",
        reason="One machine must not use up the connections of all others. This is a quarter of max_connections, and"
        " as many as Hive allows in total. Raise it if clients connect through address translation, or a proxy that is"
        " not in proxy_protocol_from.",
        ge=0,
    )
    """Maximum number of connections from one client address. Further connections are refused with an error. 0: only
    max_connections applies."""
    client_ipv6_prefix_length: int = setting(
        128,
        unit="bits",
        reason="In an internal network, all machines of a segment have the same 64 bits, so that 64 would limit"
        " them together. Set 64 if clients come from other networks: there, one machine can use all"
        " addresses of its network.",
        ge=32,
        le=128,
    )
    """Number of leading bits of IPv6 addresses that are compared by limits for client addresses:
    server.max_connections_per_address, max_calls_per_address, cache.max_loads_per_address and those of the management
    port. With 64, all addresses of such a network count as one client, also when clients take turns. 128: each address
    is a client of its own, as IPv4 addresses always are."""
    proxy_protocol_from: Words = setting(())
    """Addresses and networks of proxies that send the PROXY protocol, version 1 or 2, such as 10.0.0.7, 10.1.0.0/16.
    Their clients' addresses then count in limits, audit lines, policies and authentication.proxy_users, in place of the
    proxy's own. A connection from such an address without this header is closed, and so is one from any other address
    with it. Applies to all ports, also to those with TLS. Name only proxies: whoever can send the header can claim any
    address."""
    http_forwarded_from: Words = setting(())
    """With transport_mode = http: addresses and networks of proxies whose header X-Forwarded-For is believed. The
    client's address is then the last one in it that is none of them. From other addresses, the header has no effect."""
    max_in_flight: int = setting(
        1024,
        unit="calls",
        reason="64 waiting calls per thread: at 10 ms per call, the last one waits less than a second.",
        ge=1,
    )
    """Maximum number of calls that run or wait for a thread, not counting those of transactions and locks. Further
    calls get an error that tells the client to retry."""
    max_calls_per_user: int = setting(
        0,
        unit="calls",
        reason="Off: a site with one engine has one user. If several users share the server, a quarter of"
        " max_in_flight leaves room for the others.",
        ge=0,
    )
    """Maximum number of calls of one user that run or wait for a thread. Further calls get a MetaException. The user is
    the authenticated one, or otherwise the one that set_ugi names. 0: no limit."""
    max_calls_per_address: int = setting(
        0, unit="calls", reason="Off: behind address translation all clients have one address.", ge=0
    )
    """Maximum number of calls from one client address that run or wait for a thread. 0: no limit."""
    max_message_bytes: SizeBytes = hive_setting(100 * 1024 * 1024, "server.max.message.size", ge=1024)
    """Maximum size of a message. A larger message is refused with an error, and its connection is closed."""
    buffer_budget_bytes: SizeBytes = setting(
        1024**3,
        reason="A request of max_message_bytes (100 MiB) takes up to 0.8 GiB when it is decoded.",
        ge=1024 * 1024,
    )
    """Memory of all connections for requests that have not arrived completely or whose call is running, including their
    decoded form, for handshakes, and for replies that clients have not read. When it is used up, connections are
    closed, beginning with those that have held the most bytes for the longest time."""
    max_session_bytes: SizeBytes = setting(
        64 * 1024, reason="A user in 150 groups takes 50 KiB, at four bytes per character.", ge=2048
    )
    """Maximum size of what one connection sets: its user and groups (set_ugi), variables (setMetaConf) and options
    (setOption). Calls that would exceed it are refused."""
    sessions_budget_bytes: SizeBytes = setting(64 * 1024 * 1024, reason="16 KiB for each of 4096 connections.", ge=0)
    """Maximum size of what all connections together set. When it is reached, a connection may not set more than 1
    KiB."""
    message_timeout_s: Seconds = setting(
        120.0, reason="100 MiB at 1 MiB/s take 100 s; a client that takes longer is gone.", gt=0
    )
    """A connection is closed if a message has not arrived completely within this time. Time that the server spends on
    decoding it is not counted."""
    write_timeout_s: Seconds = setting(
        60.0,
        reason="A working client reads megabytes in this time. A slower one only occupies memory with its reply.",
        gt=0,
    )
    """A client that reads less than 64 KiB of its reply within this time is disconnected. inf: never. While the server
    stops, the limit is at most a tenth of drain_timeout_s."""
    first_call_timeout_s: Seconds = setting(
        60.0, reason="Clients connect to send calls; Hive's clients send set_ugi at once.", gt=0
    )
    """A connection that has not sent a call within this time is closed. inf: never."""
    idle_timeout_s: Seconds = setting(
        math.inf,
        reason="Hive's clients keep connections for days, and notice a closed connection only by a failed call.",
        gt=0,
    )
    """A connection that has sent calls before, and has been idle for this long, is closed. inf: never. Linux only."""
    request_timeout_s: Seconds = setting(
        600.0, reason="Hive's clients wait 600 s for an answer; nobody receives a later one.", gt=0
    )
    """A call that takes longer than this gets an error. inf: never."""
    drain_timeout_s: Seconds = setting(30.0, reason="Kubernetes kills a process 30 s after SIGTERM.", ge=0)
    """Time that running calls have to finish after SIGTERM. Then their connections are closed. inf: never."""
    tls_enabled: bool = setting(False, site_keys=metastore_keys("use.SSL"))
    """true: clients must use TLS, version 1.2 or later. Connections without TLS are refused."""
    tls_certificate_file: OptionalPath = setting(None, site_keys=metastore_keys("keystore.path"), reloadable=True)
    """The server's certificate and those of the authorities between it and the root: PEM, or a key store (PKCS12, JKS
    or JCEKS; needs hms-cache[tls]), whose first key is used. All TLS files are read again on SIGHUP, for new
    connections."""
    tls_key_file: OptionalPath = setting(None, reloadable=True)
    """PEM file with the certificate's key. Empty: it is in tls_certificate_file."""
    tls_key_password: SecretStr = setting(SecretStr(""), site_keys=metastore_keys("keystore.password"), reloadable=True)
    """Password of the key, or of the key store and its key. Prefer tls_key_password_file."""
    tls_key_password_file: OptionalPath = setting(None, reloadable=True)
    """File whose first line is that password."""
    tls_key_password_command: str = setting("", reloadable=True)
    """Command whose first line of output is that password."""
    tls_client_certificates: Literal["none", "optional", "required"] = setting("none", reloadable=True)
    """Whether clients must present a certificate that is signed by an authority in tls_client_ca_file. optional: a
    client need not present one, but one that is presented must be valid."""
    tls_client_ca_file: OptionalPath = setting(None, reloadable=True)
    """PEM file with the authorities that sign the certificates of clients."""
    tls_client_crl_file: OptionalPath = setting(None, reloadable=True)
    """PEM file with revocation lists (CRLs), one for each authority between a client's certificate and its root,
    including the root. Clients with a revoked certificate are refused, and so are all clients once a list has expired.
    Needs hms-cache[tls]."""
    tls_minimum_version: Literal["1.2", "1.3"] = setting(
        "1.2",
        reason="Browsers and Java's defaults dropped 1.1 years ago (RFC 8996).",
        site_keys=metastore_keys("ssl.protocol.blacklist", before="hive."),
        from_site=_oldest_not_blacklisted,
        reloadable=True,
    )
    """Oldest version of TLS that is accepted. If Hive's blacklist of protocols contains TLSv1.2, it is 1.3."""
    tls_ciphers: str = setting("", reloadable=True)
    """Cipher suites of TLS 1.2, in OpenSSL's syntax; all suites of 1.3 are allowed. Empty: OpenSSL's default, without
    suites that lack forward secrecy."""
    tls_handshake_timeout_s: Seconds = setting(10.0, reason="A handshake is two round trips.", gt=0, le=3600)
    """Maximum time for a TLS handshake. After that, the client is disconnected."""
    audit: Literal["all", "writes", "off"] = setting("writes", reason="Most calls are reads, which change nothing.")
    """Calls that get an audit line, in the format of Hive's HiveMetaStore.audit log."""
    audit_format: Literal["hive", "json"] = setting("hive")
    """hive: ugi=…, ip=…, cmd=… separated by tabs, with texts from clients escaped by backslashes; json: an object with
    the same names, and method, outcome, allowed, principal, mechanism and objects."""
    audit_queue_bytes: SizeBytes = setting(
        8 * 1024 * 1024, reason="Some 20,000 ordinary lines: seconds of writes at full speed.", ge=64 * 1024
    )
    """Memory for audit lines that wait to be written. When it is full, further lines are dropped and counted."""

    audit_file: OptionalPath = setting(None, reloadable=True)
    """File to which audit lines are appended, in the form of log.format, instead of the log. With several workers, each
    has a file of its own, with .worker0, .worker1, … after the name. SIGHUP reopens it."""
    audit_file_bytes: SizeBytes = setting(
        100 * 1024 * 1024, reason="Some 500,000 ordinary lines.", ge=64 * 1024, reloadable=True
    )
    """Size at which the file is renamed to FILE.1 and a new file is created."""
    audit_files_kept: int = setting(
        10, unit="files", reason="With the size above, 1.1 GB.", ge=1, le=10_000, reloadable=True
    )
    """Number of renamed files to keep; the oldest is deleted."""
    audit_syslog: str = setting("", reloadable=True)
    """Syslog to which audit lines are sent instead of the log, with the facility authpriv: the path of its socket, such
    as /dev/log, or HOST:PORT for UDP."""

    @model_validator(mode="after")
    def _syslog_has_an_address(self) -> Self:
        host, _, port = self.audit_syslog.rpartition(":")
        is_address = bool(host) and port.isdecimal() and 0 < int(port) < 65536
        if self.audit_syslog and not self.audit_syslog.startswith("/") and not is_address:
            raise ValueError("audit_syslog must be the path of a socket or HOST:PORT")
        return self

    @model_validator(mode="after")
    def _proxies_are_networks(self) -> Self:
        for name in ("proxy_protocol_from", "http_forwarded_from"):
            for text in getattr(self, name):
                try:
                    ip_network(text)
                except ValueError as error:  # also for 10.0.0.7/8, which would trust far more than one address
                    raise ValueError(f"{name}: {text!r} is neither an IP address nor a network ({error})") from error
        return self

    @model_validator(mode="after")
    def _ports_are_possible(self) -> Self:
        in_use: set[tuple[str, int]] = set()
        for index, one in enumerate(self.ports()):
            name = f"listeners[{index - 1}]: " if index else ""
            problem = problem_of_mechanisms(one.mechanisms, one.transport_mode)
            if problem is not None:
                raise ValueError(f"{name}{problem}")
            if one.port and ((one.host, one.port) in in_use):
                raise ValueError(f"{name}port {one.port} is used twice")
            in_use.add((one.host, one.port))
        return self

    def ports(self) -> tuple[ServerSettings, ...]:
        """Returns the settings for each port: these settings, then those of each listener."""
        return (self.model_copy(update={"listeners": ()}), *map(self._of_listener, self.listeners))

    def _of_listener(self, listener: ListenerSettings) -> ServerSettings:
        changed = {name: getattr(listener, name) for name in OF_THE_SERVER}
        for name in ("host", "tls_client_certificates"):
            changed[name] = changed[name] or getattr(self, name)
        return self.model_copy(update={**changed, "listeners": ()})

    @model_validator(mode="after")
    def _tls_has_its_files(self) -> Self:
        if any(one.tls_enabled for one in self.ports()) and self.tls_certificate_file is None:
            raise ValueError("tls_enabled needs tls_certificate_file, the server's certificate")
        if any(one.tls_client_certificates != "none" for one in self.ports()) and self.tls_client_ca_file is None:
            raise ValueError("tls_client_certificates needs tls_client_ca_file, the authorities that sign them")
        if self.tls_client_crl_file is not None and not any(
            one.tls_client_certificates != "none" for one in self.ports()
        ):
            raise ValueError("tls_client_crl_file needs tls_client_certificates: otherwise clients present none")
        return self

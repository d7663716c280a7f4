"""The result for each option of Mosquitto that is not part of a listener, bridge or key."""

NEEDLESS = {
    "allow_duplicate_messages": "a message comes once by overlapping subscriptions",
    "allow_zero_length_clientid": "clients without an identifier get one",
    "auto_id_prefix": "identifiers that the gateway gives begin with auto-",
    "autosave_interval": "what is acknowledged is on disk at that moment",
    "autosave_on_changes": "what is acknowledged is on disk at that moment",
    "bridge_attempt_unsubscribe": "nothing is unsubscribed that was not asked for",
    "bridge_reload_type": "a link is made anew when its settings change",
    "bridge_tls_use_os_certs": "the system's authorities are trusted where there is no ca_file",
    "bridge_tls_version": "TLS 1.2 and 1.3 are used",
    "check_retain_source": "who may write a topic is asked when a message is published",
    "dhparamfile": "TLS has no parameters of its own here",
    "include_dir": "its files are read where it stands",
    "log_dest": "the log goes to standard error, and so to the journal",
    "log_facility": "the journal has the lines",
    "log_timestamp": "lines have the time",
    "log_timestamp_format": "lines have the time",
    "max_topic_alias_broker": "topic_alias_maximum_out has a bound of its own",
    "memory_limit": "[memory] limit has a bound of its own, by the machine's memory",
    "per_listener_settings": "each listener has its own keys here",
    "persistence_file": "the database has its name in the data folder",
    "pid_file": "systemd knows the process",
    "retain_expiry_interval": "an expired retained message is removed at its time",
    "set_tcp_nodelay": "it is always set",
    "threshold": "links are always up",
    "tls_version": "TLS 1.2 and 1.3 are offered",
    "try_private": "a bridge is always known as one: MQTT 5 has No Local, 3.1.1 the bridge bit",
    "websockets_headers_size": "heads of requests have a bound of their own",
    "websockets_log_level": "[log] server has the lines of WebSocket",
}
"""Omitted without a loss."""

WITHOUT = {
    "accept_protocol_versions": "all of MQTT 3.1, 3.1.1 and 5 are accepted",
    "auth_plugin": "plug-ins for Mosquitto cannot be loaded; users are in a password_file",
    "auth_plugin_deny_special_chars": "there are no plug-ins for Mosquitto",
    "bind_interface": "host takes an address, not an interface: name the address of that interface",
    "bridge_bind_address": "the kernel chooses the address that a link comes from",
    "bridge_capath": "put the authorities into one file, for ca_file",
    "bridge_identity": "there is no TLS-PSK; use a certificate",
    "bridge_insecure": "the certificate and its host name are always checked; use ca_file",
    "bridge_psk": "there is no TLS-PSK; use a certificate",
    "bridge_receive_maximum": "100 messages may come down unacknowledged",
    "bridge_require_ocsp": "OCSP is not asked",
    "bridge_tcp_keepalive": "PINGREQ finds a dead link",
    "bridge_tcp_user_timeout": "PINGREQ finds a dead link",
    "capath": "put the authorities into one file, for client_ca",
    "ciphers": "OpenSSL's default ciphers are used",
    "ciphers_tls1.3": "OpenSSL's default ciphers are used",
    "bridge_ciphers": "OpenSSL's default ciphers are used",
    "bridge_ciphers_tls1.3": "OpenSSL's default ciphers are used",
    "clientid_prefixes": "use rules or users to tell clients apart",
    "crlfile": "revocation lists are not read: issue certificates for short times",
    "disable_client_cert_date_checks": "dates of certificates are always checked",
    "enable_control_api": "queries on $CONTROL/tidegate are there for operators",
    "global_max_clients": "give each listener maximum_connections",
    "global_max_connections": "give each listener maximum_connections",
    "http_dir": "the gateway serves no files",
    "idle_timeout": "links are always up; [uplink] schedule bounds when",
    "listener_allow_anonymous": "use allow_anonymous of the listener",
    "listener_auto_id_prefix": "identifiers that the gateway gives begin with auto-",
    "local_cleansession": "the bridge is part of the gateway and loses nothing here",
    "local_clientid": "the bridge is part of the gateway and is no client of it",
    "local_password": "the bridge is part of the gateway and is no client of it",
    "local_username": "the bridge is part of the gateway; username of [[uplink.down]] bounds it",
    "max_inflight_bytes": "messages on their way to a client are bounded by number",
    "max_qos": "QoS 0, 1 and 2 are granted",
    "notifications_local_only": "the state of a link is $SYS/broker/tidegate/uplink/state here",
    "persistence_location": "tidegate run --data DIR names the data folder",
    "plugin": "plug-ins for Mosquitto cannot be loaded; users are in a password_file",
    "plugin_load": "plug-ins for Mosquitto cannot be loaded; users are in a password_file",
    "plugin_use": "plug-ins for Mosquitto cannot be loaded; users are in a password_file",
    "psk_file": "there is no TLS-PSK; use certificates",
    "psk_hint": "there is no TLS-PSK; use certificates",
    "queue_qos0_messages": "QoS 0 is not queued for clients that are away",
    "retain_available": "retained messages are always available",
    "tls_engine": "engines of OpenSSL are not loaded",
    "tls_engine_kpass_sha1": "engines of OpenSSL are not loaded",
    "tls_keyform": "engines of OpenSSL are not loaded",
    "tls_ocsp": "OCSP is not stapled",
    "upgrade_outgoing_qos": "messages keep their QoS, as MQTT has it",
    "use_subject_as_username": 'tls_identity = "cn" takes the common name',
    "use_username_as_clientid": "client identifiers are what clients say; a session is its user's",
    "user": "systemd's User= says as whom it runs",
}
"""Omitted, and something differs without them."""

PLUGIN_OPTIONS = ("auth_opt_", "plugin_opt_")

UNKNOWN = "an option that is not known here"


def why_not(option: str) -> tuple[str, bool]:
    """Return why an option has no equivalent, and whether nothing is lost."""
    if option in NEEDLESS:
        return NEEDLESS[option], True
    if option.startswith(PLUGIN_OPTIONS):
        return "there are no plug-ins for Mosquitto", False
    return WITHOUT.get(option, UNKNOWN), False

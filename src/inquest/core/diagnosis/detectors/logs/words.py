"""What application logs say, in many languages: a table of words, and the endpoint, path or name beside them.

A line is cut before it is matched and every pattern is linear: a log is data that anybody may write. The rows stand in
order of how much they prove: a line that says that a port is taken says more than the exception that follows from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import lru_cache
from typing import Final

MAX_LINE: Final = 600
"""Characters of a line that are read."""
MAX_LINES: Final = 200
"""Lines that are read, the last ones."""
_NEAR: Final = 3
"""Lines around a word in which its endpoint may stand: clients print the address before or after the error."""

_STAMP: Final = re.compile(
    r"^(?:\d{4}-\d\d-\d\dT[\d:.,]+(?:Z|[+-]\d\d:?\d\d)? |\d{4}[-/]\d\d[-/]\d\d \d\d:\d\d:\d\d(?:[.,]\d+)? )"
)
_HOST: Final = r"(?<![\w.-])[A-Za-z0-9_][\w.-]{0,120}"
"""A host begins at a seam, so that a long word is tried once."""
_PATH: Final = r"/[\w./@+-]+"
_NO_NAMES: Final = (
    r"(?:all|type|service|symbol|module|import|class|plugin|component|view|bean)s?(?![\w.-])|(?:dependenc|propert)"
)
"""What a program resolves that is no host."""


@dataclass(frozen=True)
class LogRule:
    """One kind of trouble: `hints` are looked for first, as lower-case text, because that is cheap."""

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]


@dataclass(frozen=True)
class LogFinding:
    """One line that says what is wrong; `named` holds what the pattern picked out of it or of the lines near it."""

    kind: str
    line: str
    index: int
    rank: int
    named: dict[str, str] = dataclass_field(default_factory=dict)
    whole: bool = True
    """Whether the line names who was called by itself."""


def _row(kind: str, hints: str, pattern: str, flags: re.RegexFlag = re.IGNORECASE) -> LogRule:
    return LogRule(kind, tuple(hints.lower().split("|")), re.compile(pattern, flags))


ROWS: Final[tuple[LogRule, ...]] = (
    _row(
        "portInUse",
        "in use|EADDRINUSE|already allocated|bind to address",
        r"address (?:is )?already in use|EADDRINUSE|port (?P<port>\d{2,5}) (?:is |was )?already in use"
        r"|port is already allocated|failed to bind to address",
    ),
    _row("execFormat", "exec format error", r"exec format error"),
    _row(
        "commandMissing",
        "not found|no such file|cannot find module|jarfile|main class|no module named|can't open",
        r"^(?:/\S+: )?(?:\S*/)?(?:sh|bash|ash|dash"
        r"|zsh)?:? ?(?:line )?(?:\d+: )?(?:exec: )?(?P<what>[\w./@+-]+): (?:command )?not found$"
        r'|exec: "(?P<exec>[^"]{1,200})": (?:executable file not found|stat \S+: no such file)'
        rf"|^exec (?P<entry>{_PATH}): no such file or directory"
        rf"|(?:sh|bash): (?:\d+: )?can't open '?(?P<script>{_PATH}|[\w./-]+)'?"
        r"|python[\d.]*: can't open file '(?P<file>[^']{1,200})'"
        rf"|Cannot find module '(?P<module>{_PATH})'"
        r"|Unable to access jarfile (?P<jar>\S+)"
        r"|exec user process caused:? \"?no such file"
        r"|Could not find or load main class (?P<main>\S+)"
        r"|bin/python[\d.]*: No module named (?P<package>[\w.]+)",
    ),
    _row(
        "badFlag",
        "flag|option|argument|usage|unrecognized",
        r"unknown (?:shorthand )?flag:? (?:'\w' in )?(?P<flag>-{0,2}[\w-]+)"
        r"|flag provided but not defined: (?P<defined>-{1,2}[\w-]+)"
        r"|(?:unrecognized|unrecognised|unknown|invalid|illegal) (?:command[- ]line )?(?:option|argument"
        r"|arguments)\b:?(?: -- | )['\"`]?(?P<option>-{0,2}[\w=./-]+)"
        r'|invalid (?:value|argument) "?(?P<value>[^"\s]{1,120})"? for "?(?P<for>-{1,2}[\w-]+)'
        r"|following (?:required )?arguments (?:are|were) (?:required|not provided):\s?(?P<needed>-{0,2}[\w-]*)"
        r"|required flag\(s\) \"(?P<flags>[\w-]{1,80})|flag needs an argument: (?P<argument>\S{1,80})"
        r"|Unrecognized VM option '(?P<vm>[^']{1,120})'",
    ),
    _row(
        "dns",
        "no such host|resolve|resolution|lookup|getaddrinfo|enotfound|eai_again|unknownhost|not known|unknown host"
        "|nxdomain|bad address|host not found|host name|mysql server host|nodename|resolving|server misbehaving"
        "|lookup host",
        rf"lookup (?P<host>{_HOST})\.?(?: on [^\s]+)?: (?:no such host|server misbehaving|i/o timeout"
        rf"|Temporary failure|no answer|read udp|dial udp)"
        rf"|getaddrinfo (?:ENOTFOUND|EAI_AGAIN|failed for)? ?(?P<node>{_HOST})?"
        rf"|could not resolve (?:host(?:name)?|proxy)?:? ?['\"]?(?P<curl>{_HOST})"
        rf"|could not translate host name [\"'](?P<pg>{_HOST})[\"']"
        rf"|UnknownHost(?:Exception)?:? (?:['\"])?(?P<java>{_HOST})"
        rf"|Unknown MySQL server host '(?P<mysql>{_HOST})'"
        rf"|host not found in (?:upstream|resolver) [\"']?(?P<nginx>{_HOST})"
        rf"|bad address '(?P<busybox>{_HOST})"
        rf"|(?:couldn't|could not|cannot|can't|failed to|unable to) lookup (?:host )?(?P<looked>{_HOST})"
        rf"|(?:can't|cannot|couldn't|unable to|failed to|could not) (?:resolve(?! (?:{_NO_NAMES}))"
        rf"|find)(?: host(?:name)?)?(?: address)?:? ['\"‘]?(?P<any>{_HOST})['\"’]?(?:: Name|\s*\(|:|\s|$)"
        rf"|(?:server can't|can't) find (?P<dig>{_HOST}): (?:NXDOMAIN|SERVFAIL)"
        rf"|Temporary failure resolving '(?P<apt>{_HOST})'"
        r"|Name or service not known|Temporary failure in name resolution|nodename nor servname provided"
        r"|No address associated with hostname|name resolution (?:failed|failure)|NXDOMAIN|unknown host",
    ),
    _row(
        "rbac",
        "is forbidden",
        r'is forbidden: User "system:serviceaccount:(?P<namespace>[\w.-]+):(?P<account>[\w.-]+)" cannot (?P<verb>\w+) '
        r'resource "(?P<resource>[\w./-]+)"(?: in API group "(?P<group>[^"]*)")?',
    ),
    _row(
        "tooManyConnections",
        "connection|clients|pool",
        r"too many (?:open )?connections|remaining connection slots are reserved|too many clients"
        r"|max(?:imum)? number of clients reached"
        r"|max_connections|QueuePool limit of size|connection pool (?:is )?(?:exhausted|full|timed out|timeout)"
        r"|Connection is not available, request timed out after (?!\d+ms \(total=0\b)"
        r"|timeout(?:ed)? (?:waiting for|acquiring"
        r"|getting) (?:a )?connection from (?:the )?pool"
        r"|has exceeded the '?max_user_connections",
    ),
    _row(
        "readOnlyDatabase",
        "read-only|read only|readonly",
        r"cannot execute [\w ]{1,40} in a read-only transaction|--(?:super-)?read-only option"
        r"|READONLY You can't write against a read only"
        r"|attempt to write a readonly database|database is (?:in )?read[- ]only(?: mode)?|not (?:primary"
        r"|master) and",
    ),
    _row(
        "storeFull",
        "oom command|misconf|watermark|forbidden/12",
        r"OOM command not allowed when used memory|MISCONF Redis is configured to save"
        r"|flood[- ]stage (?:disk )?watermark|FORBIDDEN/12/index read-only",
    ),
    _row(
        "brokerFull",
        "blocked",
        r"blocked by broker|connection\.blocked|Destination address=\S{1,200} is blocked|Publishers will be blocked"
        r"|Blocking message production",
    ),
    _row(
        "advertised",
        "connection to node|group coordinator|broker may not be available",
        rf"Connection to node -?\d{{1,10}} \((?P<host>{_HOST})/[^)\s]{{0,60}}?:(?P<port>\d{{1,5}})\) could not be",
    ),
    _row(
        "cloudDenied",
        "accessdenied|not authorized to perform|does not have|authorizationfailed|authorizationpermissionmismatch",
        r"AccessDenied(?:Exception)?\b[^\n]{0,200}(?:assumed-role|is not authorized to perform|when calling)"
        r"|assumed-role/[^\n]{0,200}is not authorized to perform"
        r"|does not have (?:serviceusage|storage|secretmanager|pubsub|bigquery)\.[\w.]{1,80} (?:access|permission)"
        r"|AuthorizationPermissionMismatch",
    ),
    _row(
        "auth",
        "auth|access denied|password|login failed|credential|refused|invalid api|token|signature|accesskey|role"
        "|logon|401|noperm|permission denied for|command denied",
        r"password authentication failed for user \"?(?P<user>[^\s\"]{1,64})"
        r"|Access denied for user '?(?P<mysqluser>[^'@\s]{1,64})"
        r"|WRONGPASS|NOAUTH|NOPERM|invalid username-password pair|ERR invalid password"
        r"|Client sent AUTH, but no password"
        r"|not authorized on \S{1,80} to execute"
        r"|permission denied for (?:table|schema|database|relation|sequence|view) "
        r"|command denied to user '?(?P<denied>[^'@\s]{1,64})"
        r"|username or password not allowed|Login was refused|Authentication required|invalid credentials"
        r"|Login failed for user '?(?P<mssql>[^'\s]{1,64})|ORA-01017|invalid username/password"
        r"|(?:ACCESS_REFUSED|SASL authentication failed|SASL authentication error|SaslAuthenticationException"
        r"|SCRAM authentication failed)"
        r"|(?:^|[:\s])Authentication failed|authentication failure|AuthenticationFailed"
        r"|auth(?:entication)? error|no pg_hba\.conf entry"
        r"|role \"(?P<role>[\w.-]{1,64})\" does not exist|InvalidAccessKeyId|SignatureDoesNotMatch"
        r"|invalid_client|(?:invalid|incorrect|wrong|bad) (?:api[ _-]?key|credentials|password|access token)"
        r"|(?:status(?: code)?:?|HTTP|response|error:?)[ =]*401\b|401 Unauthorized|(?:token|credentials) (?:is "
        r"|are |has |have )?(?:expired|revoked|invalid)",
    ),
    _row(
        "certificate",
        "certificate|x509|cert_|pkix|self signed|self-signed",
        r"certificate (?:has )?expired|certificate verify failed: certificate has expired|CERT_HAS_EXPIRED"
        r"|CertificateExpiredException"
        r"|x509: (?P<x509>[^\n]{1,160})|self[- ]signed certificate|unable to get (?:local )?issuer certificate"
        r"|PKIX path building failed"
        r"|certificate verify failed|UNABLE_TO_VERIFY_LEAF_SIGNATURE|ERR_TLS_CERT_ALTNAME_INVALID|bad certificate",
    ),
    _row(
        "protocol",
        "http|tls|ssl|protocol|preface",
        r"server gave HTTP response to HTTPS client|first record does not look like a TLS handshake"
        r"|wrong version number"
        r"|Client sent an HTTP request to an HTTPS server|plain HTTP request was sent to HTTPS port"
        r"|Unsupported or unrecognized SSL message"
        r"|malformed HTTP response|http2: frame too large|Received HTTP/0\.9|EPROTO\b"
        r"|unsupported protocol scheme \"(?P<scheme>\w*)\""
        r"|(?:bogus greeting|error reading server preface)|Invalid HTTP (?:header|request|method)"
        r"|unexpected protocol|protocol mismatch"
        r"|not an? (?:SSL/TLS|HTTP) (?:record|request|response)",
    ),
    _row(
        "diskFull",
        "no space|enospc|disk|quota exceeded",
        r"no space left on device|ENOSPC|disk (?:is )?full|disk quota exceeded|not enough (?:free )?disk space"
        r"|out of disk space",
    ),
    _row(
        "readOnlyFiles",
        "read-only file|erofs",
        rf"(?:(?P<path>{_PATH})[^\n]{{0,60}})?(?:read-only file ?system"
        rf"|\bEROFS\b)(?:[^\n]{{0,40}}'(?P<after>{_PATH})')?",
    ),
    _row(
        "privileged",
        "bind|setgid|setuid|chown|operation not permitted|initgroups",
        r"(?:listen|bind)\b[^\n]{0,60}:(?P<port>\d{1,3}|10[01]\d|102[0-3])\b[^\n]{0,40}permission denied"
        r"|bind\(\) to [^\s]{1,60}:(?P<low>\d{1,4}) failed \(13"
        r"|(?:chown|setgid|setuid|initgroups|setgroups)\b[^\n]{0,80}(?:operation not permitted|permission denied)",
    ),
    _row(
        "permission",
        "permission denied|eacces|accessdenied|operation not permitted|not writable|cannot create directory"
        "|wrong ownership|invalid permissions",
        rf"(?P<path>{_PATH})['\"]?:? [^\n/]{{0,40}}(?:permission denied|operation not permitted)"
        rf"|permission denied[^\n]{{0,40}}['\" ](?P<after>{_PATH})"
        rf"|EACCES[^\n]{{0,60}}'(?P<node>{_PATH})'|AccessDeniedException: (?P<java>{_PATH})"
        rf"|(?P<dir>{_PATH})['\"]? is not writable|FileNotFoundException: (?P<stream>{_PATH}) \(Permission denied"
        rf"|directory \"(?P<owned>{_PATH})\" has (?:wrong ownership|invalid permissions)"
        rf"|cannot create directory ['‘\"]?(?P<made>{_PATH})",
    ),
    _row(
        "envMissing",
        "environ|env|not set|must be set|is required|keyerror|unbound variable|parameter not set|placeholder"
        "|undefined|missing|empty|_password|field required|not defined|not provided|not specified|not configured",
        r"(?:required )?env(?:ironment)?[ -]?var(?:iable)?s?:?(?: named)? ?['\"`$]?"
        r"(?P<name>[A-Z][A-Z0-9_]{2,80})['\"`]?:? [^\n]{0,20}(?:not (?:set|found|defined|provided|present"
        r"|exist)|missing|required|must be|is empty|unset|undefined|does not exist)"
        r"|(?i:missing|required|undefined|unset|empty|no|invalid"
        r"|mandatory)[^\n]{0,40} env(?:ironment)?[ -]?(?:var(?:iable)?s?)?(?: named)?:?[ =]+['\"`$\[]?"
        r"(?P<required>[A-Z][A-Z0-9_]{2,80})\b"
        r"|\b(?P<word>[A-Z][A-Z0-9]*_[A-Z0-9_]{1,80})['\"`]?(?: env(?:ironment)?(?: variable)?)? (?:is )?"
        r"(?:not (?:set|defined|provided|specified|configured)|must (?:be|not be)|(?:is )?required|is missing"
        r"|missing|is empty|is undefined|unset|cannot be empty)"
        r"|\b(?P<shell>[A-Za-z_][A-Za-z0-9_]{1,80}): (?:unbound variable|parameter not set|parameter null or not set)"
        r"|[Ss]et (?:the )?(?P<set>[A-Z][A-Z0-9_]{2,80}) env|Field required \[type=missing"
        r"|required key (?P<required_key>[A-Z][A-Z0-9_]{2,80}) missing"
        r"|^\s{0,8}- (?P<listed>(?:MYSQL|MARIADB)_ROOT_PASSWORD)$"
        r"|KeyError: '(?P<key>[A-Z][A-Z0-9]*_[A-Z0-9_]{1,80})'"
        r"|Could not resolve placeholder '(?P<spring>[\w.:-]{1,80})'"
        r"|[Mm]issing (?:required )?(?:configuration|config|setting"
        r"|variable)s?:? ['\"`]?(?P<setting>[A-Z][A-Z0-9]*_[A-Z0-9_]{1,80})"
        r"|You (?:need to|must) (?:specify|set) [^\n]{0,60}?(?P<must>[A-Z][A-Z0-9]*_[A-Z0-9_]{2,80})"
        r"|(?:could not|cannot|failed to) (?:find|read|get"
        r"|load) (?:required )?env(?:ironment)?(?: variable)? ['\"`$]?(?P<find>[A-Z][A-Z0-9_]{2,80})",
        re.RegexFlag(0),
    ),
    _row(
        "badConfig",
        "config|pars|yaml|json|toml|syntax|directive|invalid|unmarshal|decode|numberformat|scanner|[emerg]"
        "|unexpected|mapping values|unknown|lookup tcp|lookup udp",
        rf"\[emerg\] (?P<nginx>[^\n]{{1,120}}?) in (?P<path>{_PATH}):(?P<row>\d+)"
        rf"|\[emerg\]|(?:failed|unable|error|cannot|could not|couldn't)[^\n]{{0,30}} (?:load|parse|pars|read"
        rf"|process|unmarshal|decod)(?:ing|e)? [^\n]{{0,60}}?(?:config|configuration|settings|properties"
        rf"|(?P<file>{_PATH}\.(?:ya?ml|json|toml|conf|ini|cfg|properties|xml|env)))"
        r"|(?:config|configuration|settings) (?:file )?(?:error|is invalid|invalid|parse error"
        r"|validation failed|not valid)|invalid (?:config|configuration|settings|setting)\b"
        r"|yaml: (?:line \d+|unmarshal)|mapping values are not allowed|(?:yaml|toml|json)[\w.]*(?:decode"
        r"|scanner|parser|parse|syntax|mapping)\w*(?:error|exception)"
        r"|JSONDecodeError|invalid character '[^']{1,4}' (?:looking for|after)|in JSON at position"
        r"|json: cannot unmarshal|TOMLDecodeError|toml: line"
        r"|(?:ParseInt|ParseBool|ParseFloat|Atoi|ParseDuration): parsing \"(?P<parsed>[^\"]{0,120})\""
        r"|time: (?:invalid|unknown unit)[^\n]{0,20} duration \"?(?P<duration>[^\"\s]{1,60})"
        r"|NumberFormatException: (?:For input string: )?\"(?P<number>[^\"]{0,120})\""
        r"|invalid literal for int\(\) with base 10: '(?P<literal>[^']{0,120})'"
        r"|could not convert string to float: '(?P<floated>[^']{0,120})'"
        r"|(?:unknown|invalid|unsupported|unrecognized) (?:log ?level|value|level|directive|mode|driver|option"
        r"|key|field|setting|port)[^\n]{0,20}?[:=]? ['\"`](?P<quoted>[^'\"`]{1,120})['\"`]"
        r"|Unknown (?:config|configuration) (?:option|key|parameter)|FATAL CONFIG FILE ERROR"
        r"|unrecognized configuration parameter \"(?P<parameter>[\w.]{1,80})\""
        r"|lookup (?:tcp|udp)/(?P<named_port>[^\s:]{1,40}): |\bparse \"(?P<uri>[^\"]{1,200})\": "
        r"|(?:invalid|bad) port(?: number)?[: ]+['\"]?(?P<port>[\w.-]{1,40})",
    ),
    _row(
        "fileMissing",
        "no such file|enoent|filenotfound|does not exist|cannot open|nosuchfile",
        rf"(?P<path>{_PATH})['\"]?:? ?\(?(?:no such file or directory|does not exist|\(No such file)"
        rf"|no such file or directory:? ?[^\n]{{0,30}}?['\"](?P<after>{_PATH})['\"]"
        rf"|ENOENT[^\n]{{0,60}}'(?P<node>{_PATH})'|(?:FileNotFound|NoSuchFile)(?:Exception"
        rf"|Error):? [^\n]{{0,60}}?(?P<java>{_PATH})"
        rf"|(?:cannot|can't|could not|failed to|unable to) open (?:file )?['\"]?(?P<opened>{_PATH})"
        rf"|[Cc]ould not find (?:a part of the path|file) '(?P<dotnet>{_PATH})",
    ),
    _row(
        "reload",
        "reload|apply config",
        r"(?:failed|error|unable|cannot|could not)[^\n]{0,40}(?:reload(?:ing)?|apply(?:ing)?)[^\n]{0,40}"
        r"(?:config|rules|settings)"
        r"|(?:config|configuration|rules|settings)[^\n]{0,30}reload[^\n]{0,20}(?:fail|error|reject)|reload"
        r"(?:ing)? failed",
    ),
    _row(
        "heap",
        "outofmemory|out of memory|heap limit|memoryerror|cannot allocate memory|heap space|heap out",
        r"java\.lang\.OutOfMemoryError: ?(?P<space>[\w ]{0,60})|JavaScript heap out of memory"
        r"|Reached heap limit|^MemoryError"
        r"|runtime: out of memory|cannot allocate memory|System\.OutOfMemoryException",
    ),
    _row(
        "leak",
        "leak",
        r"(?:possible|potential|suspected|detected)?[^\n]{0,20}\b(?:memory|heap|connection|event ?emitter"
        r"|goroutine|thread)[ _-]?leak",
    ),
    _row(
        "databaseBroken",
        "database|corrupt|crashed|recovery|innodb|wal|replication",
        r"the database system is (?:in recovery mode|shutting down|not accepting)|database "
        r"(?:disk image is malformed|is corrupt)"
        r"|(?:data|page|index|table|checksum)[^\n]{0,30}corrupt|is marked as crashed|InnoDB: [^\n]{0,60}corrupt"
        r"|invalid (?:primary )?checkpoint record|could not locate a valid checkpoint",
    ),
    _row(
        "overload",
        "overload|queue|shedding|backpressure|too many requests|exhausted|saturated|429",
        r"\boverloaded\b|load shedding|shedding load|(?:request |work |task |job )queue (?:is )?(?:full"
        r"|at capacity|overflow)"
        r"|(?:worker|thread) pool (?:is )?(?:exhausted|full|saturated)|back ?pressure (?:applied|active)"
        r"|RejectedExecutionException",
    ),
    _row(
        "refused",
        "refused|econnrefused|connect|can't reach|unreachable|no route|timed out|timeout|etimedout|reset|deadline"
        "|max retries|unavailable"
        "|no servers|waiting for|broker|not ready|isn't ready|upstream|host is down|dial|sealed|code: 50",
        r"connection refused|ECONNREFUSED|can't reach|could not be established"
        r"|Connection to (?:the server )?\S+ (?:was )?refused"
        r"|actively refused|refused the connection"
        r"|no route to host|EHOSTUNREACH|network is unreachable|ENETUNREACH|host is unreachable|host is down"
        r"|i/o timeout|ETIMEDOUT|connect(?:ion)? (?:attempt )?timed out|connect(?:ion)? timeout|ConnectTimeout"
        r"|timed out (?:connecting|while connecting|trying to connect)"
        r"|(?:connection )?timed out|Max retries exceeded|context deadline exceeded|DEADLINE_EXCEEDED"
        r"|DeadlineExceeded"
        r"|ECONNRESET|connection reset by peer|broken pipe"
        r"|(?:could not|cannot|can't|failed to|unable to|couldn't|not able to)(?: \w+)? connect"
        r"|connection (?:failed|error|failure|lost)|failed (?:to establish|connecting)|NoBrokersAvailable"
        r"|NoNodeAvailable|No servers available"
        r"|code = Unavailable|StatusCode\.UNAVAILABLE|upstream (?:connect error|prematurely closed)"
        r"|\bis sealed\b|\bCode: 50[234]\b|no live upstreams|502 Bad Gateway|503 Service Unavailable|504 Gateway"
        r"|waiting for [^\n]{0,60}(?:to (?:be|become|start|come)|\.\.\.|…|:\d{2,5})|(?:is|isn't"
        r"|not) (?:yet )?(?:unavailable|not ready|ready yet|available yet)|retrying (?:connection|in \d)",
    ),
    _row(
        "databaseObject",
        "does not exist|unknown database|no such table|doesn't exist|not initialized",
        r'database "(?P<database>[\w.-]{1,64})" does not exist|Unknown database \'(?P<mysql>[\w.-]{1,64})\'',
    ),
    _row(
        "panic",
        "panic|exception|error|fatal|unhandled|uncaught|segmentation|traceback|sigsegv|abort|assert|critical",
        r"^panic: (?P<panic>[^\n]{1,200})|^fatal error: (?P<fatal>[^\n]{1,200})"
        r"|(?:Unhandled|Uncaught)[ \w]{0,20}(?:exception|error|rejection)[^\n]{0,200}"
        r"|Exception in thread \"[^\"]{0,80}\" (?P<java>[\w.$]{1,160}[^\n]{0,200})"
        r"|^(?P<python>[A-Za-z_][\w.]{0,120}(?:Error|Exception|Exit|Interrupt|Warning))(?::|$)"
        r"|Segmentation fault|SIGSEGV|core dumped"
        r"|^(?P<node>(?:[A-Z]\w{0,60})?Error(?: \[\w+\])?): |Application (?:run |startup )?failed|\bFATAL\b"
        r"|\bfatal\b:? |\bCRITICAL\b|level=fatal|\"level\":\"fatal\"",
        re.RegexFlag(0),
    ),
    _row(
        "error",
        "error|failed|failure|cannot|could not|unable|invalid|err |no such|refus|exists|denied",
        r"(?<![\w/-])(?:errors?|failed|failure|cannot|could not|unable to|invalid|no such|already exists)\b"
        r"|\b[A-Z]\w{0,60}(?:Error|Exception)\b|\"level\":\"error\"|level=error|\bERR\b",
    ),
)
"""In order of what they prove. The last two are an application's own word, and only said when nothing else is."""
RANKS: Final = {row.kind: rank for rank, row in enumerate(ROWS)}

_FLAT: Final = (("host", ("node", "curl", "pg", "java", "mysql", "nginx", "busybox", "looked", "any", "dig", "apt")),)
_ENDPOINTS: Final = (
    re.compile(rf"https?://(?:[^@/\s]{{1,80}}@)?(?P<host>{_HOST})(?::(?P<port>\d{{1,5}}))?"),
    re.compile(rf"[a-z][a-z0-9+]{{1,20}}://(?:[^@/\s]{{1,80}}@)?(?P<host>{_HOST})(?::(?P<port>\d{{1,5}}))?"),
    re.compile(r'(?:server|host) (?:at |on )?"(?P<host>[\w.-]+)"[^\n]{0,60}port "?(?P<port>\d{1,5})', re.IGNORECASE),
    re.compile(rf"`(?P<host>{_HOST})`(?::`(?P<port>\d{{1,5}})`)?"),
    re.compile(rf"host='(?P<host>{_HOST})', port=(?P<port>\d{{1,5}})"),
    re.compile(rf"dial (?:tcp|udp) (?P<host>{_HOST}|\[[0-9a-f:]+\]):(?P<port>\d{{1,5}})"),
    re.compile(rf"(?P<host>{_HOST})/(?:[\d.]{{7,15}}|<unresolved>):(?P<port>\d{{1,5}})"),
    re.compile(
        rf"(?:ECONNREFUSED|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ECONNRESET) (?P<host>{_HOST}):(?P<port>\d{{1,5}})"
    ),
    re.compile(rf"(?:to|on|at|for|with) '?(?P<host>{_HOST}):(?P<port>\d{{2,5}})\b"),
    re.compile(rf"ipv[46]:(?P<host>{_HOST}):(?P<port>\d{{1,5}})"),
    re.compile(
        rf"\b(?:host|hostname|address|addr|server|broker)[=: ]+['\"]?"
        rf"(?P<host>{_HOST})['\"]?[, ]{{1,3}}port[=: ]+['\"]?(?P<port>\d{{1,5}})",
        re.IGNORECASE,
    ),
    re.compile(rf"connect to (?:host )?(?P<host>{_HOST}) port (?P<port>\d{{1,5}})", re.IGNORECASE),
    re.compile(r"(?<![\w.:-])(?P<host>[a-z0-9][a-z0-9-]*(?:\.[a-z0-9-]+)*):(?P<port>\d{2,5})(?![\w.:])"),
    re.compile(
        r"(?:waiting for|connect(?:ing)? to|connection to|reach|contact|calling|from) (?:the )?(?:service "
        r"|host |database |server |upstream |at |on )?['\"]?(?P<host>[a-z0-9][a-z0-9.-]*[a-z0-9])['\"]?"
    ),
)
_LEARN_MORE: Final = re.compile(
    r"(?:background on this|(?:more|further) (?:info\w*|details?|help)|learn more|documentation|\bdocs\b"
    r"|troubleshoot\w*|\b(?:see|visit|read|refer to)\b)[^\n]{0,40}?https?://\S{1,300}",
    re.IGNORECASE,
)
"""A page to read about the error: nobody called it."""
_NO_HOSTS: Final = frozenset(
    {
        *(
            "localhost.localdomain",
            "the",
            "a",
            "an",
            "be",
            "server",
            "database",
            "db-server",
            "host",
            "upstream",
            "remote",
        ),
        *("service", "broker", "client", "connection", "to", "node", "error", "at", "line", "main", "go", "java", "py"),
        *(
            "socket",
            "backend-server",
            "all",
            "it",
            "its",
            "cluster",
            "any",
            "redis-server",
            "postgresql",
            "mysql-server",
        ),
    }
)
_FRAME: Final = re.compile(r"\.(?:go|py|java|js|ts|rb|rs|cs|cpp|c|php|kt|scala|ex|mjs|cjs):\d")


def lines_of(text: str) -> list[str]:
    """The last lines of a log, without time stamps and empty lines, each cut."""
    rows = [line for line in text.splitlines()[-MAX_LINES:] if line.strip()]
    return [_STAMP.sub("", line[:MAX_LINE].rstrip()) for line in rows]


def said_in(text: str) -> list[LogFinding]:
    """What a log says, what proves most first, and of that the last line that names something."""
    lines = lines_of(text)
    found = [each for index in range(len(lines)) for each in _read(lines, index)]
    return sorted(found, key=lambda each: (each.rank, not each.named, not each.whole, -each.index))


def _read(lines: Sequence[str], index: int) -> Iterator[LogFinding]:
    line = lines[index]
    low = line.lower()
    for rank, row in enumerate(ROWS):
        if any(hint in low for hint in row.hints) and (match := row.pattern.search(line)):
            named = {key: value for key, value in match.groupdict().items() if value}
            whole = row.kind not in _CALLS or bool(_endpoint(line))
            yield LogFinding(row.kind, line.strip(), index, rank, _with_endpoint(row.kind, named, lines, index), whole)


def _with_endpoint(kind: str, named: dict[str, str], lines: Sequence[str], index: int) -> dict[str, str]:
    """Hosts under one name; where the line does not name one, the lines around it may."""
    if kind == "dns":
        hosts = [named[key] for key in ("host", *_FLAT[0][1]) if named.get(key)]
        return {"host": hosts[0].strip(".-")} if hosts else _endpoint_near(lines, index)
    if kind in _CALLS:
        return {**named, **_endpoint_near(lines, index)}
    if kind == "envMissing" and not named and index:
        above = _FIELD.match(lines[index - 1])
        return {"field": above[0].upper()} if above else {}
    if kind == "portInUse" and "port" not in named:
        ports = _PORT.findall(lines[index])
        return {"port": ports[-1]} if ports else {}
    return named


_PORT: Final = re.compile(r"(?::|\bport )(\d{2,5})(?!\d|[:.]\d)", re.IGNORECASE)
"""The last one of a line: times and places in source files stand before it."""
_FIELD: Final = re.compile(r"^[A-Za-z_]\w{1,80}$")
"""A settings class prints the field's name on a line of its own, above what is wrong with it."""
_CALLS: Final = frozenset(
    {"refused", "auth", "tooManyConnections", "certificate", "protocol", "readOnlyDatabase", "storeFull"}
)
"""Kinds that happen between two: who was called is half of the answer."""


def _endpoint_near(lines: Sequence[str], index: int) -> dict[str, str]:
    order = [index, *(near for step in range(1, _NEAR + 1) for near in (index - step, index + step))]
    for near in order:
        if 0 <= near < len(lines) and (found := dict(_endpoint(lines[near]))):
            return found
    return {}


@lru_cache(maxsize=2048)
def _endpoint(line: str) -> tuple[tuple[str, str], ...]:
    """A line is asked once, however many lines beside it want to know."""
    return tuple(endpoint_in(line).items())


def endpoint_in(line: str) -> dict[str, str]:
    """Host and port that a line names; source files with line numbers and pages of documentation are none."""
    line = _LEARN_MORE.sub("", line)
    for pattern in _ENDPOINTS:
        for match in pattern.finditer(line):
            host = match["host"].strip(".-")
            groups = match.groupdict()
            if _is_host(host, bool(groups.get("port"))) and not _FRAME.search(match[0]):
                return {"host": host, **({"port": match["port"]} if groups.get("port") else {})}
    return {}


def _is_host(host: str, has_port: bool) -> bool:
    return bool(host) and host.lower() not in _NO_HOSTS and (has_port or not host.isdigit()) and not host.isnumeric()


def telling_line(text: str) -> str:
    """The last line that starts a sentence: frames of a stack trace are indented."""
    lines = [_STAMP.sub("", line[:MAX_LINE]) for line in text.splitlines() if line.strip()]
    heads = [line for line in lines if not line[0].isspace() and not line.startswith("at ")]
    return (heads or lines or [""])[-1].strip()


def frame_in(text: str) -> str:
    """The place in the application's own source that an exception names, empty where none is."""
    lines = [line.strip()[:MAX_LINE] for line in text.splitlines()[-MAX_LINES:]]
    found = [match[0] for line in lines for pattern in _FRAMES if (match := pattern.search(line))]
    own = [frame for frame in found if not _LIBRARY.search(frame)]
    if not own:
        return ""
    return own[-1] if own[-1].startswith("File ") else own[0].removeprefix("at ")


_FRAMES: Final = (
    re.compile(r'File "[^"]{1,200}", line \d+(?:, in [\w<>.]+)?'),
    re.compile(r"^at [\w.$<>/ ]{1,200}\([\w.$ /:-]{1,200}\)"),
    re.compile(r"^at [\w.$<>/\[\]` (),]{1,160} in [\w./:\\-]{1,160}:line \d+"),
    re.compile(r"^/?[\w./@+-]{1,200}\.go:\d+"),
    re.compile(r"^[\w./@+-]{1,200}\.(?:js|ts|mjs|rb|php):\d+"),
)
_LIBRARY: Final = re.compile(
    r"site-packages|dist-packages|lib/python|node_modules|node:internal|internal/|java\.base|java\.|javax\."
    r"|sun\.|jdk\."
    r"|org\.(?:springframework|apache|postgresql|hibernate|jboss|eclipse)|com\.(?:zaxxer|mysql|fasterxml)"
    r"|/usr/local/go/|runtime/|go/pkg/mod|System\.|Microsoft\."
)

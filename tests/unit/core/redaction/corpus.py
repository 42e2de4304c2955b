"""Secrets in the forms in which they stand in clusters, and what only looks like them (reliability, section 10.3).

Every value that a scanner of repositories would report is put together here from parts. `{}` is where
the secret stands.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import random
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import quote

MIXED = string.ascii_letters + string.digits
LOWER = string.ascii_lowercase + string.digits
UPPER = string.ascii_uppercase + string.digits
HEX = "0123456789abcdef"


def drawn(seed: str, size: int, alphabet: str = MIXED) -> str:
    """The same characters for the same seed, with a digit, both cases and no word in them."""
    source = random.Random(seed)
    return "".join(source.choice(alphabet) for _ in range(size))


def b64(text: str | bytes) -> str:
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


def b64url(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


PASSWORD = "hunter" + "2Zq"
"""Short and plain: nothing but its place tells that it is a secret."""


@dataclass(frozen=True)
class Positive:
    """A text, and the strings that must be gone from it."""

    text: str
    secrets: tuple[str, ...]


def told(text: str, secret: str = PASSWORD) -> Positive:
    return Positive(text.replace("{}", secret), (secret,))


# --- tokens known by their form: nothing else tells ------------------------------------------------------------

TOKENS: dict[str, str] = {
    "aws access key": "AK" + "IA" + drawn("a1", 16, UPPER),
    "aws session key": "AS" + "IA" + drawn("a2", 16, UPPER),
    "google api key": "AI" + "za" + drawn("g1", 35),
    "google oauth secret": "GOC" + "SPX-" + drawn("g2", 28),
    "google oauth token": "ya" + "29." + drawn("g3", 60),
    "github personal": "gh" + "p_" + drawn("h1", 36),
    "github oauth": "gh" + "o_" + drawn("h2", 36),
    "github user": "gh" + "u_" + drawn("h3", 36),
    "github server": "gh" + "s_" + drawn("h4", 36),
    "github refresh": "gh" + "r_" + drawn("h5", 36),
    "github fine-grained": "github" + "_pat_" + drawn("h6", 22) + "_" + drawn("h7", 59),
    "gitlab personal": "gl" + "pat-" + drawn("l1", 20),
    "gitlab deploy": "gl" + "dt-" + drawn("l2", 20),
    "gitlab runner": "gl" + "rt-" + drawn("l3", 20),
    "slack bot": "xo" + "xb-" + "123456789012-123456789012-" + drawn("s1", 24),
    "slack user": "xo" + "xp-" + "123456789012-123456789012-" + drawn("s2", 24),
    "slack app": "xa" + "pp-1-" + drawn("s3", 40, LOWER),
    "openai": "s" + "k-" + drawn("o1", 48),
    "openai project": "s" + "k-proj-" + drawn("o2", 48),
    "anthropic": "s" + "k-ant-api03-" + drawn("o3", 60),
    "stripe live": "s" + "k_live_" + drawn("p1", 24),
    "stripe restricted": "r" + "k_live_" + drawn("p2", 24),
    "stripe webhook": "wh" + "sec_" + drawn("p3", 32),
    "npm": "np" + "m_" + drawn("n1", 36),
    "pypi": "py" + "pi-" + drawn("n2", 60),
    "rubygems": "ruby" + "gems_" + drawn("n3", 48, HEX),
    "hugging face": "h" + "f_" + drawn("n4", 34),
    "vault service": "hv" + "s." + drawn("v1", 24),
    "vault batch": "hv" + "b." + drawn("v2", 60),
    "grafana service": "gl" + "sa_" + drawn("r1", 32) + "_" + drawn("r2", 8, HEX),
    "digitalocean": "do" + "p_v1_" + drawn("d1", 64, HEX),
    "docker hub": "dck" + "r_pat_" + drawn("d2", 27),
    "databricks": "da" + "pi" + drawn("d3", 32, HEX),
    "doppler": "dp" + ".pt." + drawn("d4", 43),
    "shopify": "shp" + "at_" + drawn("m1", 32, HEX),
    "sendgrid": "S" + "G." + drawn("m2", 22) + "." + drawn("m3", 43),
    "telegram": "123456789" + ":AA" + drawn("m4", 33),
    "square": "sq0" + "atp-" + drawn("m5", 22),
    "twilio": "S" + "K" + drawn("m6", 32, HEX),
    "mailgun": "ke" + "y-" + drawn("m7", 32, HEX),
    "mailchimp": drawn("m8", 32, HEX) + "-us" + "12",
    "new relic": "NR" + "AK-" + drawn("m9", 27, UPPER),
    "postman": "PM" + "AK-" + drawn("t1", 24, HEX) + "-" + drawn("t2", 34, HEX),
    "pulumi": "pu" + "l-" + drawn("t3", 40, HEX),
    "tailscale": "ts" + "key-auth-" + drawn("t4", 12) + "-" + drawn("t5", 30),
    "sentry": "sn" + "trys_" + drawn("t6", 60),
    "linear": "lin" + "_api_" + drawn("t7", 40),
    "planetscale": "pscale" + "_tkn_" + drawn("t8", 43),
    "groq": "gs" + "k_" + drawn("t9", 52),
    "atlassian": "ATA" + "TT3" + drawn("u1", 60),
    "age": "AGE-" + "SECRET-KEY-1" + drawn("u2", 58, UPPER),
    "azure client": drawn("u3", 3) + "8Q" + "~" + drawn("u4", 34),
    "jwt": b64url('{"alg":"HS256","typ":"JWT"}') + "." + b64url('{"sub":"1234","aud":"x"}') + "." + drawn("u5", 43),
    "jwt without a signature": b64url('{"alg":"none"}') + "." + b64url('{"sub":"1234"}') + ".",
    "opaque": drawn("u6", 44) + "9aZ4bY",
    "azure storage": b64(random.Random("z").randbytes(64)),
    "bcrypt": "$2y" + "$10$" + drawn("u7", 53),
    "sha512 crypt": "$6" + "$" + drawn("u8", 8) + "$" + drawn("u9", 86),
    "apache md5": "$apr" + "1$" + drawn("w1", 8) + "$" + drawn("w2", 22),
    "slack hook": "https://hooks.slack" + ".com/services/T0001/B0001/" + drawn("w3", 24),
    "discord hook": "https://discord.com" + "/api/webhooks/123456789012345678/" + drawn("w4", 60),
}


def part_of(token: str) -> str:
    """The part of it that must be gone: of an address, its last one."""
    return token.rsplit("/", 1)[-1] if token.startswith("https://") else token


CARRIERS: dict[str, Callable[[str], str]] = {
    "log line": lambda token: f"2026-05-04T12:00:00Z ERROR call with {token} was refused",
    "json log": lambda token: json.dumps({"level": "info", "msg": f"using {token} now", "n": 1}) + "\nnext line\n",
    "stack trace": lambda token: f'Traceback:\n  File "a.py", line 3\nValueError: bad {token}\n',
    "describe output": lambda token: f"Name:  web\nEnvironment:\n  BACKEND:  {token}\n  MODE:     fast\n",
    "yaml": lambda token: f'spec:\n  args:\n  - run\n  - "{token}"\n',
    "json": lambda token: json.dumps({"spec": {"args": ["run", token]}}, indent=2),
    "env list": lambda token: json.dumps({"env": [{"name": "BACKEND", "value": token}]}),
    "last-applied": lambda token: json.dumps(
        {"metadata": {"annotations": {APPLIED: json.dumps({"kind": "Pod", "spec": {"x": token}})}}}
    ),
    "twice in a string": lambda token: json.dumps({"log": json.dumps({"log": json.dumps({"msg": token})})}),
    "base64": lambda token: f"payload {b64(f'connect with {token} please')} end",
    "gzip": lambda token: f"payload {b64(gzip.compress(f'connect with {token} please'.encode(), mtime=0))} end",
    "url": lambda token: f"GET /callback?next={quote('https://h/?x=' + token, safe='')} 200",
}
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

# --- secrets that only their place tells ------------------------------------------------------------------------


def _placed() -> Iterator[tuple[str, Positive]]:
    for name, form in FORMS.items():
        yield name, told(form)


FORMS: dict[str, str] = {
    # key and value
    "dotenv": "MODE=fast\nDB_PASSWORD={}\nPORT=80\n",
    "dotenv, exported": "export DB_PASSWORD={}\n",
    "dotenv, quoted": 'DB_PASSWORD="{}"\n',
    "dotenv, single quotes": "DB_PASSWORD='{}'\n",
    "dotenv, blanks": "DB_PASSWORD = {}\n",
    "dotenv, comma inside": "DB_PASSWORD=ab,{}\n",
    "dotenv, ampersand inside": "DB_PASSWORD=ab&{}\n",
    "dotenv, semicolon inside": "DB_PASSWORD=ab;{}\n",
    "lower case": "password={}",
    "upper case": "PASSWORD={}",
    "mixed case": "PaSsWoRd={}",
    "camel case": "dbPassword={}",
    "kebab case": "db-password={}",
    "snake case": "db_password={}",
    "dotted": "spring.datasource.password={}",
    "numbered": "DB_PASSWORD_2={}",
    "glued number": "password2={}",
    "glued word": "PGPASSWORD={} psql",
    "passwd": "passwd: {}",
    "pwd": "pwd={}",
    "passphrase": "passphrase: {}",
    "pass of something": "DB_PASS={}",
    "api key": "API-KEY: {}",
    "apikey": "apikey={}",
    "secret key": "SECRET_KEY={}",
    "secret key base": "SECRET_KEY_BASE={}",
    "client secret": "client_secret={}&grant_type=x",
    "access token": "access_token={}&a=1",
    "refresh token": '"refresh_token":"{}"',
    "private key": "privateKey: {}",
    "encryption key": "encryptionKey: {}",
    "signing key": "SIGNING_KEY={}",
    "auth key": "authkey={}",
    "credentials": "credentials: {}",
    "connection string": "connectionString: {}",
    "account key": "AccountName=a;AccountKey={};EndpointSuffix=x",
    "shared access key": "SharedAccessKeyName=a;SharedAccessKey={}",
    "shared access signature": "SharedAccessSignature={}",
    "aws secret key": "aws_secret_access_key = {}",
    "a full-width key": "ｐａｓｓｗｏｒｄ={}",
    "a Cyrillic key": "pаsswоrd: {}",
    "a key with an accent": "pàsswörd: {}",
    "a zero-width key": "pass\u200bword: {}",
    "a Cyrillic key in JSON": '{"tоken": "{}"}',
    "a passphrase of words": "password: correct {} battery\n",
    "a password on the next line": "password:\n    {}\n",
    "an arrow": 'password => "{}"',
    "go assignment": 'password := "{}"',
    "python repr": "{'user': 'bob', 'password': '{}'}",
    "go struct": 'Config{User:"bob", Password:"{}"}',
    "go struct without quotes": "{User:bob Password:{}}",
    "java toString": "Config(user=bob, password={})",
    "ruby hash": ':password=>"{}", :user=>"bob"',
    "with a quote inside": r'{"password":"ab\"{}","x":1}',
    "quotes of a shell": "run --env 'DB_PASSWORD={}' app",
    "an escaped sign": r"password\={}",
    "three quotes": 'password = """{}"""',
    "a doubled quote": "password: 'it''s {}'",
    "a list in a log line": 'got "password" : [ "{}", "x" ] here',
    "a tagged value": "password: !!str {}\n",
    "cut in the quotes": 'level=info password="{}',
    "rails form": "user[password]={}&x=1",
    # properties, ini, xml, hcl, toml
    "java properties": "url=jdbc:h2\njavax.net.ssl.keyStorePassword={}\n",
    "java define": "java -Djavax.net.ssl.trustStorePassword={} -jar a.jar",
    "ini": "[mysql]\nuser = root\npassword = {}\n",
    "toml": '[db]\npassword = "{}"\n',
    "hcl": 'variable {\n  password = "{}"\n}\n',
    "xml element": "<server><username>u</username><password>{}</password></server>",
    "xml attribute": '<user name="bob" password="{}"/>',
    "xml element over lines": "<password>\n  {}\n</password>",
    "xml element with attributes": "<password xmlns='x'>{}</password>",
    "xml entry": '<entry key="password">{}</entry>',
    "xml name and value": '<property name="db.password" value="{}"/>',
    "xml key and value": '<add key="DbPassword" value="{}" />',
    "redis conf": "requirepass {}\n",
    "netrc": "machine h.example.com login bob password {}\n",
    "npmrc": "//registry.npmjs.org/:_authToken={}\n",
    # yaml and kubernetes
    "yaml env": "env:\n- name: DB_PASSWORD\n  value: {}\n",
    "yaml env, value first": "env:\n- value: {}\n  name: DB_PASSWORD\n",
    "yaml env, quoted": 'env:\n  - name: "DB_PASSWORD"\n    value: "{}"\n',
    "yaml env, block": "env:\n- name: DB_PASSWORD\n  value: |\n    {}\n",
    "yaml block": "a: 1\npassword: |-\n  {}\nb: 2\n",
    "yaml folded block": "a: 1\npassword: >\n  one\n  {}\nb: 2\n",
    "yaml flow": "db: {host: h, password: {}}\n",
    "helm values": "postgresql:\n  auth:\n    postgresPassword: {}\n    database: shop\n",
    "helm set": "helm upgrade shop . --set auth.password={} --set replicas=2",
    "describe env": "    Environment:\n      DB_PASSWORD:  {}\n      MODE:         fast\n",
    "json env": '{"env":[{"name":"DB_PASSWORD","value":"{}"}]}',
    "json env in a log line": 'patch {"env":[{"name":"DB_PASSWORD","value":"{}"}]} sent',
    "json env, cut": '[{"name":"DB_PASSWORD","value":"{}"},{"name":"A","va',
    "go env": "[{Name:MODE Value:fast} {Name:DB_PASSWORD Value:{} ValueFrom:nil}]",
    "opentelemetry attribute": '{"key":"db.password","value":{"stringValue":"{}"}}',
    "secret, yaml": "apiVersion: v1\nkind: Secret\nstringData:\n  a: {}\n",
    "secret, yaml, block": "kind: Secret\nstringData:\n  a.conf: |\n    x\n    {}\n",
    "secret, yaml, flow": "kind: Secret\nstringData: {a: {}}\n",
    "secret, yaml, kind last": "stringData:\n  a: {}\nkind: Secret\n",
    "secret, yaml in a list": "kind: List\nitems:\n- kind: Secret\n  stringData:\n    a: {}\n",
    "secret, yaml, broken": "kind: Secret\nstringData:\n  a: {}\n\t: [\n",
    "secret, json": '{"kind":"Secret","stringData":{"a":"{}"}}',
    "secret, json, nested": '{"kind":"List","items":[{"kind":"List","items":[{"kind":"Secret","data":{"a":"{}"}}]}]}',
    "secret, list of secrets": '{"kind":"SecretList","items":[{"data":{"a":"{}"}}]}',
    "secret, without a kind": '{"type":"Opaque","metadata":{"name":"db"},"data":{"a":"{}"}}',
    "secret, cut": '{"kind":"Secret","metadata":{"name":"db"},"data":{"one":"{}","two":"eA',
    "secret, cut inside a string": '"{\\"kind\\":\\"Secret\\",\\"data\\":{\\"a\\":\\"{}\\",\\"b',
    "secret, in a log over lines": 'got:\n{\n  "kind": "Secret",\n  "data": {\n    "a": "{}"\n  }\n}\ndone\n',
    "secret, applied by patch": 'kubectl patch secret db -p \'{"kind":"Secret","stringData":{"a":"{}"}}\'',
    "kubeconfig token": "users:\n- name: me\n  user:\n    token: {}\n",
    "kubeconfig password": "users:\n- name: me\n  user:\n    username: u\n    password: {}\n",
    "kubeconfig key": "    client-key-data: {}\n",
    "docker config": '{"auths":{"r.example.com":{"username":"u","password":"{}"}}}',
    "docker identity token": '{"auths":{"r.example.com":{"identitytoken":"{}"}}}',
    "a file of keys": '{"data":{"tls.key":"{}"}}',
    "pgpass in a config map": '{"kind":"ConfigMap","data":{".pgpass":"db:5432:shop:app:{}"}}',
    "id_rsa in a config map": '{"kind":"ConfigMap","data":{"id_rsa":"{}"}}',
    "config map with yaml": '{"kind":"ConfigMap","data":{"app.yaml":"db:\\n  password: {}\\n"}}',
    "config map with json": '{"kind":"ConfigMap","data":{"app.json":"{\\"db\\":{\\"password\\":\\"{}\\"}}"}}',
    "value under a sensitive key": '{"password":{"value":"{}","order":1}}',
    "a list under a sensitive key": '{"passwords":["{}"]}',
    "a number under a sensitive key": '{"pin":1,"password":"{}"}',
    "an escaped key": '{"p\\u0061ssword":"{}"}',
    "a repeated key": '{"password":"{}","password":""}',
    "json in json in json": json.dumps({"a": json.dumps({"b": json.dumps({"password": "{}"})})}),
    # addresses
    "postgres url": "postgres://app:{}@db:5432/shop",
    "redis url": "redis://:{}@cache:6379/0",
    "amqp url": "amqps://u:{}@mq:5671/v",
    "mongo url": "mongodb+srv://u:{}@c.example.net/x?retryWrites=true",
    "sqlalchemy url": "postgresql+psycopg://u:{}@db/x",
    "git url": "fatal: unable to access 'https://bob:{}@git.example.com/a.git/'",
    "proxy url": "HTTPS_PROXY=http://u:{}@proxy:3128",
    "url with a slash in it": "postgres://u:a/{}@db:5432/x",
    "url with an at in it": "postgres://u:a@{}@db:5432/x",
    "url in json": '{"url":"postgres://app:{}@db:5432/shop"}',
    "two urls": "nodes=http://a:80,http://u:{}@b:80",
    "signed url": "https://h.blob.example.net/x?sv=1&sig={}&se=2",
    "amazon signed url": "https://h/x?X-Amz-Credential=c&X-Amz-Signature={}&a=1",
    "token in a query": "GET /v1/x?access_token={} 200",
    "api key in a query": "GET /v1/x?api_key={}&a=1 200",
    "go dsn": "app:{}@tcp(db:3306)/shop?parseTime=true",
    "go dsn under a harmless key": "DATABASE=app:{}@tcp(db:3306)/shop",
    "oracle": "jdbc:oracle:thin:scott/{}@db:1521/x",
    "jdbc": "jdbc:mysql://db/x?user=a&password={}",
    "ado.net": "Server=db;User Id=a;Password={};Encrypt=true",
    "ado.net with a blank": "Server=db;User Id=a;Password=a {};Encrypt=true",
    "libpq": "host=db user=a password={} dbname=x",
    # commands
    "long flag": "run --password {} --verbose",
    "long flag, equals": "run --password={} --verbose",
    "long flag, quoted": 'run --password "{}"',
    "single dash": "keytool -list -storepass {} -v",
    "flag in a yaml list": "args:\n- --password\n- {}\n- --x\n",
    "flag in a flow list": 'command: ["app", "--password", "{}"]\n',
    "aws configure": "aws configure set aws_secret_access_key {}",
    "mysql": "mysql -u root -p{} db",
    "mysqldump": "mysqldump -h db -uroot -p'{}' shop",
    "sshpass": "sshpass -p {} ssh h",
    "docker login": "docker login -u bob -p {} r.example.com",
    "redis-cli": "redis-cli -h cache -a {} ping",
    "sqlcmd": "sqlcmd -S db -U sa -P {} -Q x",
    "ldapsearch": "ldapsearch -D cn=a -w {} -b dc=x",
    "curl user": "curl -s -u bob:{} https://h/",
    "curl user, long": "curl --user 'bob:{}' https://h/",
    "curl header": "curl -H 'X-Api-Key: {}' https://h/",
    "curl bearer": 'curl -H "Authorization: Bearer {}" https://h/',
    "curl body": 'curl -d \'{"password":"{}"}\' https://h/',
    "kubectl create secret": "kubectl create secret generic x --from-literal=password={}",
    "arguments in json": '{"args":["--user","a","--password","{}"]}',
    "arguments with equals in json": '{"args":["--password={}"]}',
    "mysql arguments in json": '{"command":["mysql","-uroot","-p{}"]}',
    "redis arguments in json": '{"command":["redis-cli","-a","{}","ping"]}',
    "a shell in json": '{"command":["sh","-c","exec app --db-password={}"]}',
    "a shell over lines": "run \\\n  --password \\\n  --token={} \\\n  x\n",
    # headers
    "bearer": "got Bearer {}_abc",
    "authorization": "Authorization: Digest username=a, response={}",
    "authorization in a dump": "map[Authorization:[Bearer {}_abc] Accept:[*/*]]",
    "authorization in json": '{"headers":{"Authorization":["Bearer {}"]}}',
    "basic": "Proxy-Authorization: Basic {}",
    "cookie": "Cookie: session={}; theme=dark",
    "set-cookie": "Set-Cookie: sid={}; Path=/; HttpOnly",
    "api key header": "X-Api-Key: {}",
    "vault header": "X-Vault-Token: {}",
    "amazon session header": "X-Amz-Security-Token: {}",
    "csrf header": "X-CSRF-Token: {}",
}
PLACED: dict[str, Positive] = dict(_placed())

# --- private keys, whole and cut; encodings ------------------------------------------------------------------------

LINES = [drawn(f"k{n}", 64) for n in range(6)]
KEY_BODY = "\n".join([*LINES, drawn("k9", 20) + "=="])


def pem(flavour: str, body: str = KEY_BODY) -> str:
    return f"-----BEGIN {flavour}-----\n{body}\n-----END {flavour}-----"


def _keys() -> Iterator[tuple[str, Positive]]:
    whole, gone = pem("RSA " + "PRIVATE KEY"), tuple(LINES)
    yield "plain", Positive(f"a\n{whole}\nb", gone)
    yield "in a json string", Positive(json.dumps({"msg": f"x {whole} y"}), gone)
    yield "in a json string of a log", Positive(f"12:00 sent {json.dumps({'msg': whole})} ok", gone)
    yield "in a yaml block", Positive("conf: |\n" + "\n".join(f"  {line}" for line in whole.splitlines()), gone)
    yield (
        "under a time on each line",
        Positive("\n".join(f"12:00:00 stderr F {line}" for line in whole.splitlines()), gone),
    )
    yield "as an environment value", Positive("KEY_FOR_X='" + whole.replace("\n", "\\n") + "'", gone)
    yield "in base64", Positive(f"x: {b64(whole)}", (b64(whole)[40:80],))
    yield "in wrapped base64", Positive(f"x:\n{wrapped(b64(whole), 76)}\n", (b64(whole)[160:200],))
    yield "as a service account", Positive(json.dumps({"type": "service_account", "private_key": whole}), gone)
    for cut in range(8, len(whole), 29):
        yield f"cut after {cut}", Positive(f"a\n{whole[:cut]}", visible_lines(whole[:cut]))
        yield f"cut before {cut}", Positive(f"{whole[cut:]}\nb", visible_lines(whole[cut:]))


def visible_lines(text: str) -> tuple[str, ...]:
    """Pieces of a key of 40 and more characters that stand in a text."""
    return tuple(line for line in text.splitlines() if len(line) >= 40 and "-----" not in line)


def wrapped(text: str, width: int) -> str:
    return "\n".join(text[at : at + width] for at in range(0, len(text), width))


KEYS: dict[str, Positive] = dict(_keys())

_LONG = "user: bob\n" + "filler: nothing at all in this line\n" * 3 + f"password: {PASSWORD}\nmore: x\n"
ENCODED: dict[str, Positive] = {
    "base64": Positive(f"x {b64(_LONG)} y", (b64(_LONG)[20:60],)),
    "base64 url-safe": Positive(f"x {b64url(_LONG)} y", (b64url(_LONG)[20:60],)),
    "base64 twice": Positive(f"x {b64(b64(_LONG))} y", (b64(b64(_LONG))[20:60],)),
    "base64 of gzip": Positive(f"x {b64(gzip.compress(_LONG.encode(), mtime=0))} y", ("H4sI",)),
    "base64 behind a slash": Positive(f"x /tmp/{b64(_LONG)} y", (b64(_LONG)[20:60],)),
    "base64 behind a name": Positive(f"x job-{b64(_LONG)} y", (b64(_LONG)[20:60],)),
    "base64, wrapped": Positive(wrapped(b64(_LONG), 76), (b64(_LONG)[-60:-20],)),
    "base64, wrapped in a block": Positive(
        "x: |\n  " + wrapped(b64(_LONG), 64).replace("\n", "\n  "), (b64(_LONG)[-60:-20],)
    ),
    "base64 in json": Positive(json.dumps({"x": b64(_LONG)}), (b64(_LONG)[20:60],)),
    "base64 of a secret": Positive(
        b64('{"kind":"Secret","data":{"a":"' + b64(PASSWORD) + '"}}'), (b64('{"kind":"Secret","da')[:20],)
    ),
    "data url": Positive(f"data:text/plain;base64,{b64(_LONG)}", (b64(_LONG)[20:60],)),
    "percent": Positive(f"q={quote(f'password={PASSWORD}', safe='')}", (PASSWORD,)),
    "percent twice": Positive(f"q={quote(quote(f'password={PASSWORD}', safe=''), safe='')}", (PASSWORD,)),
    "docker auth": Positive('{"auths":{"r":{"auth":"' + b64("u:" + PASSWORD) + '"}}}', (b64("u:" + PASSWORD),)),
    "docker auth, cut": Positive('"auths":{"r":{"auth":"' + b64("u:" + PASSWORD) + '"},', (b64("u:" + PASSWORD),)),
    "secret data": Positive('{"kind":"Secret","data":{"a":"' + b64(PASSWORD) + '"}}', (b64(PASSWORD),)),
    "secret data, yaml": Positive(f"kind: Secret\ndata:\n  a: {b64(PASSWORD)}\n", (b64(PASSWORD),)),
}

# --- harmless look-alikes: byte for byte the same ------------------------------------------------------------------

DIGEST = hashlib.sha256(b"image").hexdigest()
UID = "3f0c8d0e-91a1-4c44-8d55-6f3f4f0c9f11"
CERTIFICATE = pem("CERTIFICATE")

HARMLESS: dict[str, str] = {
    "task": "task-abcd1234",
    "risk": "risk-sk-level disk-abcd1234efgh",
    "tokenizer": "tokenizer=fast",
    "max_tokens": "max_tokens=400",
    "token counts": '{"prompt_tokens":120,"completion_tokens":30,"total_tokens":150}',
    "secret name": "secretName: my-tls",
    "secret name in json": '{"secretName":"my-secret"}',
    "secret key reference": '{"secretKeyRef":{"name":"db","key":"password"}}',
    "secret key reference, yaml": "valueFrom:\n  secretKeyRef:\n    name: db\n    key: password\n",
    "secret key reference, flow": "valueFrom: {secretKeyRef: {name: db, key: password}}",
    "secret reference": "envFrom:\n- secretRef:\n    name: app-env\n",
    "secret volume": '{"volumes":[{"name":"v","secret":{"secretName":"my-tls","defaultMode":420}}]}',
    "projected token": '{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}}',
    "pull secrets": '{"imagePullSecrets":[{"name":"regcred"}]}',
    "existing secret": "auth:\n  existingSecret: shop-db\n",
    "automount": "automountServiceAccountToken: false",
    "token path": "tokenPath: /var/run/secrets/tokens/vault",
    "token file": "--token-file=/var/run/secrets/token",
    "key file": "--tls-private-key-file=/etc/kubernetes/pki/apiserver.key",
    "authorization mode": "kube-apiserver --authorization-mode=Node,RBAC --port=0",
    "token ttl": "--token-ttl=24h0m0s",
    "secret not found": 'MountVolume.SetUp failed for volume "v" : secret "db-cred" not found',
    "key not found": "couldn't find key DB_URL in Secret shop/app",
    "secrets forbidden": 'failed to get secret: secrets "db" is forbidden: User "x" cannot get resource',
    "token denied": "failed to fetch oauth token: denied: requested access to the resource is denied",
    "token review": "tokenreviews.authentication.k8s.io is forbidden",
    "token prose": 'failed to fetch token: serviceaccount "x" not found',
    "bearer prose": "Basic authentication is disabled; the bearer token is invalid",
    "password prose": "the password must have 8 characters; password authentication failed for user app",
    "expansion": "--password $(DB_PASSWORD) --token=${TOKEN}",
    "template": "password: {{ .Values.password }}",
    "describe reference": "      DB_PASSWORD:  <set to the key 'pw' in secret 'db'>  Optional: false\n",
    "describe none": "Image pull secrets:  <none>\nMountable secrets:   <none>\nTokens:              <none>\n",
    "describe volume": "    Type:        Secret (a volume populated by a Secret)\n    SecretName:  my-tls\n",
    "stars": "password=******** user=bob",
    "already masked": "password=[REDACTED] token: [REDACTED]",
    "empty": 'password= token="" secret: ""',
    "null": '{"password":null,"token":"","secret":false}',
    "working directory": "PWD=/usr/src/app\nOLDPWD=/\n",
    "schema": '{"properties":{"password":{"type":"string","description":"of the user"}}}',
    "form": '<input type="password" name="pw" id="x">',
    "keys": "key=value keys: 3 primaryKey=id partition_key=user_id monkey=1",
    "public key": "publicKey: x",
    "ssh public key": "ssh-rsa " + b64(b"\0\0\0\7ssh-rsa" + random.Random(1).randbytes(300)) + " bob@h",
    "signature algorithm": "signatureAlgorithm: ecdsa-with-SHA256",
    "design": "design=flat signal=9 assigned=true",
    "passed": "tests passed: 12, pass: 3, passing=true",
    "bypass": "bypass=true compass: north",
    "keyboard": "keyboard=de hotkey: F1 turkey: 3",
    "author": "author: Bob authority=x authenticated=true",
    "string": "connection: ok string=abc substring: x",
    "stringly": '{"type":"string","format":"date-time"}',
    "cookies enabled": "cookies_enabled=true cookie_policy=strict",
    "annotation key": "metadata:\n  annotations:\n    vault.example.com/agent-inject-token: database/creds\n",
    "annotation key in json": '{"metadata":{"annotations":{"vault.example.com/agent-inject-secret":"database/creds"}}}',
    "annotation of argo": '{"metadata":{"annotations":{"argocd.argoproj.io/tracking-id":"shop:apps/Deployment:a/b"}}}',
    "annotation of a checksum": '{"metadata":{"annotations":{"checksum/secret":"' + DIGEST + '"}}}',
    "annotation of an applied pod": json.dumps(
        {"metadata": {"annotations": {APPLIED: json.dumps({"kind": "Pod", "spec": {"image": "app:1"}})}}}
    ),
    "labels": '{"metadata":{"labels":{"app.kubernetes.io/name":"web","token":"blue"}}}',
    "digest": f"image: app@sha256:{DIGEST}",
    "digest alone": DIGEST,
    "image id": f"docker-pullable://r.example.com/app@sha256:{DIGEST}",
    "image with a port": f"docker://registry:5000/app:1.2@sha256:{DIGEST}",
    "container id": f"containerd://{DIGEST}",
    "git revision": "revision: 4bf92f3577b34da6a3ce929d0e0e473612345678",
    "uid": f"uid: {UID}",
    "resource version": 'resourceVersion: "884422110033"',
    "trace": "traceparent=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "etag": 'etag: W/"5f3c-1a2b3c4d5e6f"',
    "pod": "pod/payments-api-7d9f8b6c5d-x2x9z",
    "long pod": "analytics-warehouse-materialized-view-refresher-28503360-abcde",
    "node": "ip-10-0-1-7.eu-west-1.compute.internal",
    "service account": "system:serviceaccount:kube-system:horizontal-pod-autoscaler",
    "address": "10.1.2.3:8080 [::1]:80 fe80::1 2001:db8::8a2e:370:7334",
    "versions": "1.2.3.4 v1.2.3.4 1.28.3-gke.1286000 v1.2.3-rc.1+build.5",
    "e-mail": "contact bob@example.com or <ops+x@example.co.uk>",
    "host": "shop.svc.cluster.local db-0.db.shop.svc",
    "generator url": '{"generatorURL":"http://prometheus:9090/graph?g0.expr=up%3D%3D0"}',
    "url with a port": "http://host:8080/path@v2 https://h/a:b@c",
    "url with a user": "ssh://git@git.example.com/a.git git@github.com:a/b.git",
    "url of two hosts": "http://host1:9092,http://host2:9092 kafka://a:9092,b:9092",
    "url of ipv6": "http://[::1]:8080/x@y",
    "mail url": "mailto:bob@example.com",
    "npm package": "@scope/name@1.2.3 left-pad@1.3.0",
    "percent": "100%25 done, q=hello%20world%20and%20more",
    "certificate": CERTIFICATE,
    "certificate in json": json.dumps({"crt": CERTIFICATE}),
    "certificate in base64": b64(CERTIFICATE),
    "certificate authority": f"certificate-authority-data: {b64(CERTIFICATE)}",
    "certificate, cut": CERTIFICATE[:200],
    "certificate request": pem("CERTIFICATE REQUEST"),
    "public key block": pem("PUBLIC KEY"),
    "certificate expiry": "notAfter=May  4 12:00:00 2026 GMT; serial=0A1B2C3D",
    "module checksum": "golang.org/x/net v0.1.0 h1:" + b64(random.Random(2).randbytes(32)),
    "integrity": 'integrity="sha512-' + b64(random.Random(3).randbytes(64)) + '"',
    "base64 of json": b64('{"replicas": 3, "strategy": "RollingUpdate", "paused": false}'),
    "base64 of prose": b64("nothing to see here, move along, all of this is harmless text"),
    "base64 of gzip": b64(gzip.compress(b"nothing to see here, move along " * 9, mtime=0)),
    "java class": "at com.example.payments.internal.AbstractTransactionalSettlementServiceFactoryBean.run(X.java:12)",
    "java frame": "at org.springframework.security.oauth2.core.OAuth2AuthenticationException.<init>(X.java:3)",
    "go frame": "k8s.io/client-go/tools/cache.(*Reflector).ListAndWatch(0xc0001a2b40, 0xc000456780)",
    "kubelet path": f"/var/lib/kubelet/pods/{UID}/volumes/kubernetes.io~projected/kube-api-access-x2x9z",
    "store path": "/nix/store/0c1a2b3d4e5f6g7h8i9j0k1l2m3n4o5p-openssl-3.0.12/lib/libssl.so.3",
    "arn": "arn:aws:iam::123456789012:role/eks-node-role-us-east-1",
    "bucket": "s3://my-bucket-name/path/to/object.tar.gz",
    "sql": "SELECT id, password_changed_at FROM users WHERE token_type = 'x'",
    "leader": "you are now leader; system: out of memory; =====",
    "headings": "#### attention\n=====\n-----\n",
    "dashes": "-----BEGIN NOTES-----\nhello\n-----END NOTES-----",
    "cron": "schedule: '*/5 * * * *'",
    "quantity": "memory: 512Mi cpu: 250m 1.5e3 0.10000000000000000555",
    "json numbers": '{"a": 1.0, "b": 1e5, "c": 0.10000000000000000555, "d": 12345678901234567890123}',
    "json spacing": '{ "a" :1,\n\t"b":[ 1,2 ] , "c":{} }\n',
    "json escapes": '{"a":"\\u00e9\\/x","b":"é"}',
    "yaml": "a: 1\nb:\n- x\n- 'y: z'\nc: |\n  text\n",
    "windows lines": "a: 1\r\nb: 2\r\n",
    "unicode": "größer ≥ 5 µs, 日本語, пароль не указан, 🙂",
    "flags": "mysql -u root --port=3306 -h db; docker run -p 8080:80 app; curl -u",
    "ports": "docker run -p 8080:80 nginx; kubectl port-forward svc/x 8080:80",
    "kubectl": "kubectl get secret db -n shop -o name; kubectl create token default",
    "error with a key": "Error: secret key password not found in db-cred",
    "generics": "List<Token> tokens = new ArrayList<Secret>(x); if (token > 5) {}",
    "html": "<p>Enter your password</p><b>token</b>",
    "lease": '{"holderIdentity":"inquest-7d9f8b6c5d-x2x9z_0a1b2c3d-4e5f"}',
}


def drawn_negatives() -> Iterator[tuple[str, str]]:
    """Identifiers of every kind that clusters are full of, 2,000 and more of them (reliability, section 10.3)."""
    kinds: dict[str, Callable[[random.Random], str]] = {
        "digest": lambda r: f"sha256:{r.getrandbits(256):064x}",
        "git": lambda r: f"commit {r.getrandbits(160):040x}",
        "uid": lambda r: f'"uid": "{_uid(r)}"',
        "trace": lambda r: f"trace_id={r.getrandbits(128):032x} span_id={r.getrandbits(64):016x}",
        "revision": lambda r: f"web-{''.join(r.choices('bcdfghjklmnpqrstvwxz2456789', k=10))}",
        "pod": lambda r: f"pod/{r.choice(WORDS)}-{r.choice(WORDS)}-{r.getrandbits(36):09x}-{_letters(r, 5)}",
        "version": lambda r: f'resourceVersion: "{r.randrange(10**6, 10**12)}"',
        "address": lambda r: ".".join(str(r.randrange(256)) for _ in range(4)) + f":{r.randrange(65536)}",
        "mail": lambda r: f"{r.choice(WORDS)}.{_letters(r, 6)}@{r.choice(WORDS)}.example.com",
        "image": lambda r: f"r.example.com/{r.choice(WORDS)}/{r.choice(WORDS)}:{r.randrange(9)}.{r.randrange(99)}.0",
        "time": lambda r: f"2026-05-{r.randrange(1, 29):02d}T12:{r.randrange(60):02d}:00.{r.randrange(10**9):09d}Z",
        "secret name": lambda r: f'secret "{r.choice(WORDS)}-{_letters(r, 5)}" not found',
        "base64": lambda r: b64(json.dumps({"field": r.choice(WORDS), "n": r.randrange(10**9), "ok": True})),
        "class": lambda r: "com.example." + "".join(r.choice(WORDS).title() for _ in range(6)),
        "path": lambda r: "/" + "/".join(r.choice(WORDS) for _ in range(7)),
        "log": lambda r: (
            f'level=info msg="{r.choice(WORDS)} {r.choice(WORDS)}" took={r.randrange(10**6)}µs n={r.random()}'
        ),
    }
    for kind, make in kinds.items():
        source = random.Random(kind)
        for number in range(130):
            yield f"{kind} {number}", make(source)


WORDS = (
    *("payment", "order", "shop", "cart", "web", "worker", "cache", "index"),
    *("search", "token", "secret", "monitor", "gateway", "ledger", "invoice"),
)


def _uid(source: random.Random) -> str:
    text = f"{source.getrandbits(128):032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _letters(source: random.Random, size: int) -> str:
    return "".join(source.choices("bcdfghjklmnpqrstvwxz2456789", k=size))

"""Patterns of secrets in shell commands, configuration, SQL and URLs. Pure."""

from __future__ import annotations

from afterword.privacy import secret_values as values
from afterword.privacy.secret_kinds import Check, Pattern, Secret

VALUE = r"(?P<value>\\?\"[^\"\n]{1,200}\"|'[^'\n]{1,200}'|`[^`\n]{1,200}`|[“„«][^”“»\n]{1,200}[”“»]|[^\s\"'`<>“”„«»]{1,300})"
_WORD = r"[\"']?(?P<value>[^\s\"'|;<>]{3,200}+)"


def _command(name: str, expression: str, *hints: str, check: Check = values.check_command_password) -> Pattern:
    return Pattern(name, Secret.PASSWORD, expression, hints, check)


_ARGUMENTS = r"\b[^\n|;]{0,200}?\s"

COMMAND_PATTERNS: tuple[Pattern, ...] = (
    _command(
        "url with a password",
        r"(?<![\w+.-])[a-z][a-z0-9+.-]{1,20}+://[^\s/:@\"'<>]{0,100}+:(?P<value>[^\s/@\"'<>]{1,200}+)@(?=[\w\[%{-])",
        "://",
        check=values.check_url_password,
    ),
    _command(
        "password in an address",
        r"[?&;](?:user_?|db_?)?(?:pass(?:word|wd|phrase|code)?|pwd?|passwort|kennwort|senha|clave|contrase(?:ñ|n|%c3%b1)a|mdp|wachtwoord)"
        r"=(?P<value>[^\s&;\"'<>)]{3,200}+)",
        "=",
    ),
    Pattern(
        "signature in a url",
        Secret.TOKEN,
        r"[?&;](?:sig|signature|x-amz-signature|x-goog-signature|key|code|auth|(?:access_?|auth_?|refresh_?)?token|secret|client_secret|api_?key)"
        r"=(?P<value>[\w%+/=.-]{16,}+)",
        ("=",),
        values.check_key,
    ),
    Pattern(
        "authorization header",
        Secret.TOKEN,
        r"\b(?:authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:basic|token|apikey|bearer)|bearer)\s{1,3}"
        r"(?P<value>[\w.~+/=-]{8,}+)",
        ("authorization", "bearer"),
        values.check_header,
    ),
    Pattern(
        "azure connection string",
        Secret.API_KEY,
        r"\b(?:AccountKey|SharedAccessKey|SharedSecret)=(?P<value>[A-Za-z0-9+/]{20,}+={0,2})",
        ("accountkey", "sharedaccesskey", "sharedsecret"),
    ),
    _command(
        "option of a command",
        rf"(?<![\w-])--?(?:password|passwd|passphrase|pass|token|api-key|secret|client-secret|access-token|auth-token)[= ]{VALUE}",
        *("-pass", "-token", "-api-key", "-secret", "-client-secret", "-access-token", "-auth-token"),
        check=values.check_option,
    ),
    _command(
        "credentials of curl",
        rf"\b(?:curl|https?|wget|xh){_ARGUMENTS}(?:-u|-a|--user|--auth)[\s=]{{0,2}}[\"']?[^\s:\"']{{1,60}}:(?P<value>[^\s\"']{{3,100}}+)",
        *("-u", "-a", "--user", "--auth"),
        check=values.check_option,
    ),
    _command(
        "attached option of a database client",
        r"\b(?:mysql|mariadb)\w{0,10}\b(?:\s[^\n|;]{0,200}?)?\s-p" + _WORD,
        "mysql",
        "mariadb",
    ),
    _command("attached option of an archiver", rf"\b(?:7z\w?|rar|unrar){_ARGUMENTS}-p" + _WORD, "7z", "rar"),
    _command(
        "option -p of a command",
        rf"\b(?:sshpass|docker|podman|mongo\w{{0,8}}|rdesktop|az|oc|helm|vncviewer|nexus|cf){_ARGUMENTS}-p[\s=]?"
        + _WORD,
        *("sshpass", "docker", "podman", "mongo", "rdesktop", "az ", "oc ", "helm", "cf "),
        check=values.check_option,
    ),
    _command(
        "other option of a command",
        rf"\b(?:redis-cli{_ARGUMENTS}-a|(?:zip|unzip|sqlcmd|mosquitto_(?:pub|sub)){_ARGUMENTS}-P|ldap\w{{3,10}}{_ARGUMENTS}-w"
        rf"|openssl\senc{_ARGUMENTS}-k|htpasswd(?:\s-\w{{1,6}}){{1,3}}\s\S{{1,100}}\s\S{{1,60}}|xfreerdp{_ARGUMENTS}/p:"
        rf"|snmp\w{{2,8}}{_ARGUMENTS}-A|ipmitool{_ARGUMENTS}-P|useradd{_ARGUMENTS}-p)\s{{0,2}}" + _WORD,
        *(
            "redis-cli",
            "zip",
            "sqlcmd",
            "mosquitto",
            "ldap",
            "openssl",
            "htpasswd",
            "xfreerdp",
            "snmp",
            "ipmitool",
            "useradd",
        ),
        check=values.check_option,
    ),
    _command(
        "password after a user",
        rf"\b(?:smbclient|rpcclient|net|mount){_ARGUMENTS}(?:-U\s?|/user:)?[\w.\\-]{{1,60}}%" + _WORD,
        "%",
    ),
    _command("argument of openssl", r"-pass(?:in|out)?\s{1,2}[\"']?(?:pass|str):(?P<value>[^\s\"']{3,200}+)", "pass"),
    _command(
        "password that is piped",
        r"\b(?:echo|printf)\s(?:-n\s)?(?:[\"'])?(?P<value>[^\s\"']{3,100}+)[\"']?\s{0,2}\|\s{0,2}[^\n]{0,80}?(?:sudo\s[^\n]{0,20}?-S\b|--password-stdin|--stdin|passwd|chpasswd|kinit)",
        *("sudo", "stdin", "passwd", "kinit"),
    ),
    _command(
        "sql",
        r"\bIDENTIFIED\s(?:WITH\s\S{1,60}\s)?(?:BY|AS)\s(?:PASSWORD\s)?[\"'](?P<value>[^\"'\n]{3,200}+)[\"']",
        "identified",
    ),
    _command("sql role", r"\bPASSWORD\s{1,2}'(?P<value>[^'\n]{3,200}+)'", "password"),
    _command(
        "sql assignment",
        r"\bset\spassword\b[^\n;]{0,80}?=\s{0,2}(?:password\()?'(?P<value>[^'\n]{3,200}+)'",
        "set password",
    ),
    _command(
        "setting without a sign",
        r"(?m:^)\s{0,8}(?:requirepass|masterauth|wpa[_-]passphrase|wpa_psk|psk)[\s=]{1,3}" + _WORD,
        "requirepass",
        "masterauth",
        "wpa",
        "psk",
    ),
    _command("netrc", r"\blogin\s\S{1,80}\s{1,4}password\s{1,4}(?P<value>\S{3,200}+)", "login"),
    _command(
        "user and password",
        r"\b(?:creds?|credentials?|log-?in|zugangsdaten|zugang|identifiants|credenciales|credenciais|credenziali|inloggegevens|user(?:name)? ?(?:and|/|&) ?(?:password|pw))\b[^\n:=]{0,30}[:=]\s{0,2}[\w.@+-]{1,60}\s?[/:|]\s?(?P<value>[^\s,;/|]{4,100}+)",
        *("cred", "login", "log-in", "zugang", "identifiants", "credencia", "inloggegevens", "user"),
        check=values.check_adjacent_password,
    ),
)

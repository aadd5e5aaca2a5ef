"""Patterns of secrets with a fixed form: keys of providers, private keys, signed tokens, commands, SQL and URLs. Pure."""

from __future__ import annotations

from afterword.privacy import secret_values as values
from afterword.privacy.secret_kinds import Check, SecretKind, SecretPattern

_START, _END = r"(?<![\w-])", r"(?![\w-])"

_PREFIXED = (
    ("anthropic", r"sk-ant-[\w-]{16,}+", "sk-ant-"),
    ("openai", r"sk-[\w-]{20,}+", "sk-"),
    ("google", r"AIza[\w-]{30,}+", "aiza"),
    ("google oauth", r"(?:GOCSPX-[\w-]{20,}+|ya29\.[\w-]{20,}+)", "gocspx-", "ya29."),
    ("aws", r"(?:AKIA|ASIA)[0-9A-Z]{16}", "akia", "asia"),
    ("github", r"(?:gh[opsur]_[A-Za-z0-9]{20,}+|github_pat_\w{20,}+)", *"gho_ ghp_ ghs_ ghu_ ghr_ github_pat_".split()),
    ("gitlab", r"gl(?:pat|dt|rt|cbt|ptt)-[\w.-]{18,}+", "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-"),
    ("slack", r"xox[abeoprs]-[\w-]{10,}+|xapp-\d-[\w-]{10,}+", "xox", "xapp-"),
    ("stripe", r"(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9]{16,}+", "k_live_", "k_test_", "whsec_"),
    ("hugging face", r"hf_[A-Za-z0-9]{30,}+", "hf_"),
    ("npm", r"npm_[A-Za-z0-9]{30,}+", "npm_"),
    ("pypi", r"pypi-[\w-]{20,}+", "pypi-"),
    ("sendgrid", r"SG\.[\w-]{16,}+\.[\w-]{16,}+", "sg."),
    ("twilio", r"SK[0-9a-f]{32}", "sk"),
    (
        "others",
        r"(?:dop_v1_[0-9a-f]{60,}+|dapi[0-9a-f]{32}|shp(?:at|ss|ca|pa)_[0-9a-fA-F]{32}|gsk_\w{40,}+|xai-\w{40,}+"
        r"|lin_api_\w{30,}+|ntn_\w{40,}+|hv[sbr]\.[\w-]{24,}+|glsa_\w{32,}+|sbp_[0-9a-f]{40}|dckr_pat_[\w-]{20,}+"
        r"|figd_[\w-]{30,}+|NRAK-[0-9A-Z]{20,}+|r8_\w{30,}+|AGE-SECRET-KEY-1[0-9A-Z]{50,}+|ATATT3[\w=-]{30,}+)",
        *"dop_v1_ dapi shpat_ shpss_ shpca_ shppa_ gsk_ xai- lin_api_ ntn_ hvs. hvb.".split(),
        *("hvr.", "glsa_", "sbp_", "dckr_pat_", "figd_", "nrak-", "r8_", "age-secret-key-1", "atatt3"),
    ),
)
"""Keys with a provider's prefix: name, expression, hints. A key must contain a digit, so that no plain word matches."""

_FORMS = (
    ("mailgun", r"key-[0-9a-f]{32}", "key-"),
    ("mailchimp", r"[0-9a-f]{32}-us\d{1,2}", "-us"),
    ("perplexity", r"pplx-\w{32,}+", "pplx-"),
    ("airtable", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}", "pat"),
    ("square", r"(?:EAAA[\w-]{50,}+|sq0(?:atp|csp|idp)-[\w-]{20,}+)", "eaaa", "sq0"),
    ("facebook", r"EAA[A-Za-z0-9]{80,}+", "eaa"),
    ("discord", r"[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,}+", *"0123456789"),
    ("doppler", r"dp\.(?:st|pt|ct|sa|scim|audit)\.[\w.-]{30,}+", "dp."),
    ("planetscale", r"pscale_(?:tkn|pw|oauth)_[\w.-]{30,}+", "pscale_"),
    ("cloudflare", r"v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}+", "v1.0-"),
    ("tailscale", r"tskey-(?:auth|api|client|webhook|scim)-[\w-]{16,}+", "tskey-"),
    ("postman", r"PMAK-[0-9a-f]{24}-[0-9a-f]{30,}+", "pmak-"),
    ("rubygems", r"rubygems_[0-9a-f]{40,}+", "rubygems_"),
    ("sentry", r"sntry[su]_[\w+/=-]{40,}+", "sntry"),
    ("fireworks", r"fw_[A-Za-z0-9]{20,}+", "fw_"),
    ("brevo", r"xkeysib-[0-9a-f]{60,}+-\w{10,}+", "xkeysib-"),
    ("posthog", r"phx_\w{30,}+", "phx_"),
    ("mapbox", r"sk\.eyJ[\w.-]{40,}+", "sk.eyj"),
    ("dropbox", r"sl\.[\w-]{60,}+", "sl."),
    ("langsmith", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}", "lsv2_"),
    ("tavily", r"tvly-[\w-]{20,}+", "tvly-"),
    ("netlify", r"nfp_\w{30,}+", "nfp_"),
    ("heroku", r"HRKU-[\w-]{30,}+", "hrku-"),
    ("fly", r"(?:fo1_[\w-]{30,}+|fm2_[\w+/=]{60,}+)", "fo1_", "fm2_"),
    ("pulumi", r"pul-[0-9a-f]{40}", "pul-"),
    ("terraform", r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}+", "atlasv1"),
    ("contentful", r"CFPAT-[\w-]{40,}+", "cfpat-"),
    ("razorpay", r"rzp_(?:live|test)_\w{14,}+", "rzp_"),
    ("plaid", r"access-(?:sandbox|development|production)-[0-9a-f-]{36}", "access-"),
    ("flutterwave", r"FLWSECK[_-](?:TEST-)?[\w-]{12,}+", "flwseck"),
    ("easypost", r"EZ[AT]K[0-9a-f]{50,}+", "ezak", "eztk"),
    ("stripe webhook", r"whsec_[\w+/=]{24,}+", "whsec_"),
    ("alibaba", r"LTAI[A-Za-z0-9]{12,20}", "ltai"),
    ("tencent", r"AKID[A-Za-z0-9]{32}", "akid"),
    ("docker", r"dckr_(?:oat|pat)_[\w-]{20,}+", "dckr_"),
    ("elevenlabs", r"sk_[0-9a-f]{48}", "sk_"),
    ("bitcoin", r"[5KL][1-9A-HJ-NP-Za-km-z]{50,51}", *"0123456789"),
    ("extended private key", r"[xyzt]prv[1-9A-HJ-NP-Za-km-z]{100,112}", "prv"),
    ("nostr", r"nsec1[0-9a-z]{58}", "nsec1"),
    ("age", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}+", "age-secret-key"),
)


def _key_pattern(name: str, expression: str, *hints: str) -> SecretPattern:
    return SecretPattern(name, SecretKind.API_KEY, f"{_START}(?P<value>{expression}){_END}", hints, values.key_span, 0)


PROVIDER_PATTERNS: tuple[SecretPattern, ...] = (
    SecretPattern(
        "private key block",
        SecretKind.PRIVATE_KEY,
        r"(?P<value>-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:(?!-----)[\s\S])*+-----END [A-Z0-9 ]{0,40}-----|(?:(?:\\[nr]|\s)*+[A-Za-z0-9+/=]{32,}+)++))",
        ("private key",),
        flags=0,
    ),
    SecretPattern(
        "webhook",
        SecretKind.WEBHOOK,
        r"https://(?:hooks\.slack\.com/(?:services|workflows)/|(?:\w{1,10}\.)?discord(?:app)?\.com/api/webhooks/"
        r"|[\w-]{1,60}\.webhook\.office\.com/)(?P<value>[^\s\"'<>)\]]{10,}+)",
        ("hooks.slack.com", "/api/webhooks/", "webhook.office.com"),
        flags=0,
    ),
    *(_key_pattern(*entry) for entry in (*_PREFIXED, *_FORMS)),
    SecretPattern(
        "telegram bot token",
        SecretKind.TOKEN,
        r"(?<![\w:-])(?P<value>\d{8,10}:[A-Za-z0-9_-]{35})(?![\w-])",
        (":aa",),
        flags=0,
    ),
    SecretPattern(
        "jwt", SecretKind.TOKEN, rf"{_START}(?P<value>eyJ[\w-]{{8,}}+\.[\w-]{{8,}}+\.[\w-]{{4,}}+)", ("eyj",), flags=0
    ),
)

VALUE = r"(?P<value>\\?\"[^\"\n]{1,200}\"|'[^'\n]{1,200}'|`[^`\n]{1,200}`|[“„«][^”“»\n]{1,200}[”“»]|[^\s\"'`<>“”„«»]{1,300})"
_WORD = r"[\"']?(?P<value>[^\s\"'|;<>]{3,200}+)"


def _command_pattern(
    name: str, expression: str, *hints: str, check: Check = values.command_password_span
) -> SecretPattern:
    return SecretPattern(name, SecretKind.PASSWORD, expression, hints, check)


_ARGUMENTS = r"\b[^\n|;]{0,200}?\s"

COMMAND_PATTERNS: tuple[SecretPattern, ...] = (
    _command_pattern(
        "url with a password",
        r"(?<![\w+.-])[a-z][a-z0-9+.-]{1,20}+://[^\s/:@\"'<>]{0,100}+:(?P<value>[^\s/@\"'<>]{1,200}+)@(?=[\w\[%{-])",
        "://",
        check=values.url_password_span,
    ),
    _command_pattern(
        "password in an address",
        r"[?&;](?:user_?|db_?)?(?:pass(?:word|wd|phrase|code)?|pwd?|passwort|kennwort|senha|clave|contrase(?:ñ|n|%c3%b1)a|mdp|wachtwoord)"
        r"=(?P<value>[^\s&;\"'<>)]{3,200}+)",
        "=",
    ),
    SecretPattern(
        "signature in a url",
        SecretKind.TOKEN,
        r"[?&;](?:sig|signature|x-amz-signature|x-goog-signature|key|code|auth|(?:access_?|auth_?|refresh_?)?token|secret|client_secret|api_?key)"
        r"=(?P<value>[\w%+/=.-]{16,}+)",
        ("=",),
        values.key_span,
    ),
    SecretPattern(
        "authorization header",
        SecretKind.TOKEN,
        r"\b(?:authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:basic|token|apikey|bearer)|bearer)\s{1,3}"
        r"(?P<value>[\w.~+/=-]{8,}+)",
        ("authorization", "bearer"),
        values.header_value_span,
    ),
    SecretPattern(
        "azure connection string",
        SecretKind.API_KEY,
        r"\b(?:AccountKey|SharedAccessKey|SharedSecret)=(?P<value>[A-Za-z0-9+/]{20,}+={0,2})",
        ("accountkey", "sharedaccesskey", "sharedsecret"),
    ),
    _command_pattern(
        "option of a command",
        rf"(?<![\w-])--?(?:password|passwd|passphrase|pass|token|api-key|secret|client-secret|access-token|auth-token)[= ]{VALUE}",
        *("-pass", "-token", "-api-key", "-secret", "-client-secret", "-access-token", "-auth-token"),
        check=values.option_value_span,
    ),
    _command_pattern(
        "credentials of curl",
        rf"\b(?:curl|https?|wget|xh){_ARGUMENTS}(?:-u|-a|--user|--auth)[\s=]{{0,2}}[\"']?[^\s:\"']{{1,60}}:(?P<value>[^\s\"']{{3,100}}+)",
        *("-u", "-a", "--user", "--auth"),
        check=values.option_value_span,
    ),
    _command_pattern(
        "attached option of a database client",
        r"\b(?:mysql|mariadb)\w{0,10}\b(?:\s[^\n|;]{0,200}?)?\s-p" + _WORD,
        "mysql",
        "mariadb",
    ),
    _command_pattern("attached option of an archiver", rf"\b(?:7z\w?|rar|unrar){_ARGUMENTS}-p" + _WORD, "7z", "rar"),
    _command_pattern(
        "option -p of a command",
        rf"\b(?:sshpass|docker|podman|mongo\w{{0,8}}|rdesktop|az|oc|helm|vncviewer|nexus|cf){_ARGUMENTS}-p[\s=]?"
        + _WORD,
        *("sshpass", "docker", "podman", "mongo", "rdesktop", "az ", "oc ", "helm", "cf "),
        check=values.option_value_span,
    ),
    _command_pattern(
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
        check=values.option_value_span,
    ),
    _command_pattern(
        "password after a user",
        rf"\b(?:smbclient|rpcclient|net|mount){_ARGUMENTS}(?:-U\s?|/user:)?[\w.\\-]{{1,60}}%" + _WORD,
        "%",
    ),
    _command_pattern(
        "argument of openssl", r"-pass(?:in|out)?\s{1,2}[\"']?(?:pass|str):(?P<value>[^\s\"']{3,200}+)", "pass"
    ),
    _command_pattern(
        "password that is piped",
        r"\b(?:echo|printf)\s(?:-n\s)?(?:[\"'])?(?P<value>[^\s\"']{3,100}+)[\"']?\s{0,2}\|\s{0,2}[^\n]{0,80}?(?:sudo\s[^\n]{0,20}?-S\b|--password-stdin|--stdin|passwd|chpasswd|kinit)",
        *("sudo", "stdin", "passwd", "kinit"),
    ),
    _command_pattern(
        "sql",
        r"\bIDENTIFIED\s(?:WITH\s\S{1,60}\s)?(?:BY|AS)\s(?:PASSWORD\s)?[\"'](?P<value>[^\"'\n]{3,200}+)[\"']",
        "identified",
    ),
    _command_pattern("sql role", r"\bPASSWORD\s{1,2}'(?P<value>[^'\n]{3,200}+)'", "password"),
    _command_pattern(
        "sql assignment",
        r"\bset\spassword\b[^\n;]{0,80}?=\s{0,2}(?:password\()?'(?P<value>[^'\n]{3,200}+)'",
        "set password",
    ),
    _command_pattern(
        "setting without a sign",
        r"(?m:^)\s{0,8}(?:requirepass|masterauth|wpa[_-]passphrase|wpa_psk|psk)[\s=]{1,3}" + _WORD,
        "requirepass",
        "masterauth",
        "wpa",
        "psk",
    ),
    _command_pattern("netrc", r"\blogin\s\S{1,80}\s{1,4}password\s{1,4}(?P<value>\S{3,200}+)", "login"),
    _command_pattern(
        "user and password",
        r"\b(?:creds?|credentials?|log-?in|zugangsdaten|zugang|identifiants|credenciales|credenciais|credenziali|inloggegevens|user(?:name)? ?(?:and|/|&) ?(?:password|pw))\b[^\n:=]{0,30}[:=]\s{0,2}[\w.@+-]{1,60}\s?[/:|]\s?(?P<value>[^\s,;/|]{4,100}+)",
        *("cred", "login", "log-in", "zugang", "identifiants", "credencia", "inloggegevens", "user"),
        check=values.password_after_word_span,
    ),
)

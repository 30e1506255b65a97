"""The shapes of accounts for the OpenAPI document."""

from __future__ import annotations

from topics.accountmodel import SCOPE_NAMES, KeyStatus, Role, UserStatus
from topics.server.shapes import COUNT, FLAG, STAMP, TEXT, Schema, answer_shape, object_shape, ref
from topics.wire.account import PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN

_SCOPES: Schema = {"type": "array", "items": {"type": "string", "enum": list(SCOPE_NAMES)}}
_PREFIXES: Schema = {"type": "array", "items": TEXT, "description": "Beginnings of names; empty is any name."}
_TIME: Schema = {"type": "integer", "description": "Milliseconds since the epoch."}
_ROLE: Schema = {"type": "string", "enum": [role.value for role in Role]}
_PASSWORD: Schema = {"type": "string", "minLength": PASSWORD_CHARS_MIN, "maxLength": PASSWORD_CHARS_MAX}
_WARNING: Schema = TEXT | {"description": "There when authentication is off, so that nobody is asked for a key."}
_LINK: dict[str, Schema] = {
    "link": TEXT | {"description": "Where the password is chosen; it works once, and is shown once."},
    "link_expires_ts": _TIME,
}

_KEY: dict[str, Schema] = {
    "id": TEXT,
    "name": TEXT,
    "scopes": _SCOPES,
    "prefixes": _PREFIXES,
    "status": {"type": "string", "enum": [status.value for status in KeyStatus]},
    "created_by": TEXT,
    "created_ts": _TIME,
    "expires_ts": STAMP,
    "last_used_ts": STAMP,
    "revoked_ts": STAMP,
}
_USER: dict[str, Schema] = {
    "id": TEXT,
    "email": TEXT,
    "role": _ROLE,
    "status": {"type": "string", "enum": [status.value for status in UserStatus]},
    "created_ts": _TIME,
    "changed_ts": _TIME,
    "signed_in_ts": STAMP,
    "link_expires_ts": STAMP,
    "session_count": COUNT,
}
_SESSION: dict[str, Schema] = {
    "id": TEXT,
    "user_id": TEXT,
    "email": TEXT,
    "created_ts": _TIME,
    "refreshed_ts": _TIME,
    "expires_ts": _TIME,
    "address": TEXT,
    "agent": TEXT,
    "current": FLAG | {"description": "Whether it is the one that asks."},
}
_ME: dict[str, Schema] = {
    "authentication": FLAG | {"description": "Whether anybody is asked for a key or a sign-in."},
    "kind": {"type": "string", "enum": ["everybody", "key", "user"]},
    "name": TEXT,
    "scopes": _SCOPES,
    "prefixes": _PREFIXES,
    "set_up": FLAG | {"description": "Whether there is a user."},
}

KEY_ID: Schema = {
    "name": "key",
    "in": "path",
    "required": True,
    "description": "The id of the managed key, with or without its `dh_`.",
    "schema": TEXT,
}
USER_ID: Schema = {
    "name": "user",
    "in": "path",
    "required": True,
    "description": "The id or the e-mail of the user.",
    "schema": TEXT,
}
SESSION_ID: Schema = {
    "name": "session",
    "in": "path",
    "required": True,
    "description": "The id of the session.",
    "schema": TEXT,
}

COMPONENTS: dict[str, Schema] = {
    "Nothing": object_shape("", {}, "No field is looked at."),
    "ManagedKey": object_shape("*", _KEY),
    "ManagedKeyAnswer": answer_shape(_KEY),
    "ManagedKeyRequest": object_shape(
        "name scopes",
        {
            "name": TEXT | {"description": "What it is for."},
            "scopes": _SCOPES,
            "prefixes": {"type": ["array", "null"], "items": TEXT},
            "expires_ts": {"type": ["integer", "null"], "description": "When it ends; without one it does not."},
        },
    ),
    "NewManagedKey": answer_shape(
        _KEY | {"key": TEXT | {"description": "The whole key. It is shown now and never again."}},
        {"warning": _WARNING},
    ),
    "ManagedKeyList": answer_shape({"keys": {"type": "array", "items": ref("ManagedKey")}}),
    "User": object_shape("*", _USER),
    "UserAnswer": answer_shape(_USER),
    "UserRequest": object_shape("email", {"email": TEXT, "role": _ROLE | {"default": Role.VIEWER.value}}),
    "UserChange": object_shape(
        "",
        {
            "role": {"type": ["string", "null"], "enum": [*(role.value for role in Role), None]},
            "disabled": {"type": ["boolean", "null"]},
            "new_link": FLAG | {"description": "Make a link by which the user chooses a new password."},
        },
    ),
    "UserWithLink": answer_shape(_USER, _LINK | {"warning": _WARNING}),
    "UserList": answer_shape({"users": {"type": "array", "items": ref("User")}}),
    "UserDropped": answer_shape({"id": TEXT, "email": TEXT, "deleted": FLAG}),
    "SignIn": object_shape("email password", {"email": TEXT, "password": TEXT | {"writeOnly": True}}),
    "SetUp": object_shape(
        "token password",
        {
            "token": TEXT | {"description": "What the link has behind its `#`."},
            "password": _PASSWORD | {"writeOnly": True},
            "email": {
                "type": ["string", "null"],
                "description": "Of the first user; an invitation is for one already.",
            },
        },
    ),
    "LinkRequest": object_shape("token", {"token": TEXT | {"description": "What the link has behind its `#`."}}),
    "LinkAnswer": answer_shape(
        {
            "first": FLAG | {"description": "Whether it makes the first user, who then chooses an e-mail as well."},
            "expires_ts": _TIME,
        },
        {"email": TEXT | {"description": "Of the user whose password is chosen by it."}},
    ),
    "PasswordChange": object_shape(
        "current_password new_password",
        {"current_password": TEXT | {"writeOnly": True}, "new_password": _PASSWORD | {"writeOnly": True}},
    ),
    "SignedIn": answer_shape(
        {
            "user": ref("User"),
            "scopes": _SCOPES,
            "session_id": TEXT,
            "csrf_token": TEXT | {"description": "To be sent as `X-CSRF-Token` with whatever changes something."},
            "expires_ts": _TIME | {"description": "When to refresh, at the latest."},
        }
    ),
    "SignedOut": answer_shape({"signed_out": FLAG}),
    "Me": answer_shape(_ME, {"user": ref("User"), "session_id": TEXT, "csrf_token": TEXT}),
    "Session": object_shape("*", _SESSION),
    "SessionList": answer_shape({"sessions": {"type": "array", "items": ref("Session")}}),
    "SessionEnded": answer_shape({"id": TEXT, "ended": FLAG}),
}

"""What an application's server needs of Windlass: access tokens, the admin API, webhooks."""

from . import types_gen
from .admin_gen import AdminClient
from .connection import ApiError, NoAnswerError
from .token import sign_token
from .types_gen import *  # noqa: F403
from .webhook import WebhookError, read_webhook

__all__ = ["AdminClient", "ApiError", "NoAnswerError", "WebhookError", "read_webhook", "sign_token"]
__all__ += types_gen.__all__

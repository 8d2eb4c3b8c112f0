// What an application's server needs of Windlass: access tokens, the admin API, webhooks.
export { AdminClient } from "./admin.gen.js";
export { ApiError, NoAnswerError } from "./connection.js";
export { signToken } from "./token.js";
export { readWebhook, WebhookError } from "./webhook.js";

/** @typedef {import("./connection.js").ConnectionOptions} ConnectionOptions */

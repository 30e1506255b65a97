/* What cannot be undone, asked for twice: the first call is answered with a token, and the call repeated with it is carried
 * out. The person was asked before, in words; this is what the server wants to be sure of. */

import { ApiError } from "./api.js";

/* `call(query)` is the request, to be made with this query. */
export async function confirmed(call) {
  const query = { force: true };
  try {
    return await call(query);
  } catch (error) {
    const token = error instanceof ApiError && error.status === 412 ? error.detail.confirmation_token : null;
    if (!token) throw error;
    return call({ ...query, confirmation_token: token });
  }
}

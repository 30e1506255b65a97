/* Something a person asked for: done, and told of, or refused, and told why. */

import { toast } from "./toast.js";

/* `then` is called when it was done. */
export async function act(work, said, then) {
  try {
    await work();
  } catch (error) {
    toast(error.message, { kind: "bad" });
    return;
  }
  toast(said);
  then();
}

/* A button that copies a text. */

import { iconButton } from "./state.js";
import { toast } from "./toast.js";

export function copyButton(text, label = "Copy") {
  const content = typeof text === "function" ? text : () => text;
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(content());
      toast("Copied.");
    } catch {
      // A page that was not served over TLS, or from this machine, may not reach the clipboard.
      toast("The browser does not let this page copy: select the text instead.", { kind: "warning" });
    }
  };
  return iconButton("copy", label, copy);
}

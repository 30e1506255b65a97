/* From the address to the view, and on.
 *
 * One view is mounted at a time. Its signal is aborted when it is left, so that nothing of it goes on behind. Links of this
 * page are taken over; all others work as they always do. Whoever is not signed in is led to the sign-in, with the way back. */

import { ApiError, connection } from "../kit/api.js";
import { h, replace } from "../kit/dom.js";
import { empty } from "../kit/empty.js";
import { failed, loading } from "../kit/state.js";
import { find } from "./address.js";
import { useStyles } from "./styles.js";

const SIGN_IN = "/sign-in";

export class Router {
  constructor(frame, person) {
    this.frame = frame;
    this.person = person;
    this.leaving = new AbortController();
    this.go = this.go.bind(this);
  }

  begin() {
    window.addEventListener("popstate", () => this.show());
    document.addEventListener("click", (event) => this.clicked(event));
    connection.addEventListener("signed-out", () => this.signIn());
    this.show();
  }

  go(path, { replace: instead = false } = {}) {
    const address = new URL(path, location.href);
    if (instead) history.replaceState(null, "", address);
    else if (address.href !== location.href) history.pushState(null, "", address);
    this.show();
    if (!address.hash) window.scrollTo(0, 0);
  }

  clicked(event) {
    const link = event.target.closest?.("a[href]");
    const plain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;
    if (!link || !plain || event.defaultPrevented || link.target || link.hasAttribute("download")) return;
    const address = new URL(link.href);
    if (address.origin !== location.origin || find(address.pathname) === null) return;
    event.preventDefault();
    this.go(address.pathname + address.search + address.hash);
  }

  signIn() {
    if (location.pathname === SIGN_IN) return;
    const found = find(location.pathname);
    if (found?.route.open) return;
    const back = location.pathname + location.search;
    this.go(back === "/" ? SIGN_IN : `${SIGN_IN}?${new URLSearchParams({ back })}`, { replace: true });
  }

  async show() {
    this.leaving.abort();
    const { signal } = (this.leaving = new AbortController());
    const found = find(location.pathname);
    const root = h("div", { class: "view", data: { view: found?.route.name ?? "missing" } }, loading());
    this.frame.put(root, found?.route ?? null);
    if (found === null) {
      this.frame.titled("Not there");
      replace(root, missing(location.pathname));
      return;
    }
    try {
      await this.mount(root, found, signal);
    } catch (error) {
      if (signal.aborted || (error instanceof ApiError && error.status === 401)) return;
      replace(root, h("h1", { class: "unseen" }, found.route.label ?? found.route.name), failed(error, () => this.show()));
      if (!(error instanceof ApiError)) console.error(error);
    } finally {
      if (!signal.aborted) root.removeAttribute("aria-busy");
    }
  }

  async mount(root, { route, params }, signal) {
    root.setAttribute("aria-busy", "true");
    // Whoever comes here is about to become somebody else.
    if (route.open) this.person.forget();
    const asked = route.open ? Promise.resolve(null) : this.person.ask(signal);
    const [{ default: view }, me] = await Promise.all([import(`../views/${route.name}.js`), asked]);
    if (signal.aborted) return;
    await useStyles(view.style);
    if (signal.aborted) return;
    if (route.scope && !me.may(route.scope)) throw forbidden(route.scope);
    this.frame.titled(view.title(params));
    replace(root);
    const query = new URLSearchParams(location.search);
    await view.mount(root, { params, query, go: this.go, signal, me });
  }
}

function forbidden(scope) {
  return new ApiError(403, "forbidden", "What you signed in with does not let you see this.", { scope: [scope] });
}

function missing(path) {
  const back = h("a", { href: "/", class: "button" }, "To the overview");
  return [h("h1", null, "Not there"), empty({ title: "There is no such page", text: `Nothing is at ${path}.`, actions: [back] })];
}

/* Every view: where it is and what it is called. The server reads the paths from here as well, to know which addresses
 * are pages.
 *
 *   path    a part with a colon captures: `/topics/:topic`
 *   name    of its module, `views/<name>.js`, which is loaded when the view is first opened, and of its icon
 *   label   in the menu and the palette
 *   under   the view in the menu that it belongs to
 *   group   where it stands in the menu; a view without one is not in it
 *   key     behind `g`
 *   scope   what one must be allowed to see it
 *   open    whether it is shown to who has not signed in */

export const GROUPS = ["Look", "Data", "Work", "Access"];

export const ROUTES = [
  { path: "/", name: "overview", label: "Overview", group: "Look", key: "o", scope: "read" },
  { path: "/topics", name: "topics", label: "Topics", group: "Data", key: "t", scope: "read" },
  { path: "/topics/:topic", name: "topic", under: "topics", scope: "read" },
  { path: "/routers", name: "routers", label: "Routers", group: "Data", key: "r", scope: "read" },
  { path: "/groups", name: "groups", label: "Groups", group: "Data", key: "c", scope: "read" },
  { path: "/groups/:topic/:group", name: "group", under: "groups", scope: "read" },
  { path: "/sql", name: "sql", label: "SQL", group: "Look", key: "s", scope: "read" },
  { path: "/queues", name: "queues", label: "Queues", group: "Work", key: "q", scope: "read" },
  { path: "/queues/:topic", name: "queue", under: "queues", scope: "read" },
  { path: "/heaps", name: "heaps", label: "Heaps", group: "Work", key: "h", scope: "read" },
  { path: "/heaps/:topic", name: "heap", under: "heaps", scope: "read" },
  { path: "/dead", name: "dead", label: "Dead letters", group: "Work", key: "d", scope: "read" },
  { path: "/dead/:topic", name: "dead", under: "dead", scope: "read" },
  { path: "/pipelines", name: "pipelines", label: "Pipelines", group: "Data", key: "p", scope: "read" },
  { path: "/pipelines/:name", name: "pipeline", under: "pipelines", scope: "read" },
  { path: "/keys", name: "keys", label: "Keys", group: "Access", key: "k", scope: "admin" },
  { path: "/users", name: "users", label: "Users", group: "Access", key: "u", scope: "admin" },
  { path: "/audit", name: "audit", label: "Audit", group: "Access", key: "a", scope: "admin" },
  { path: "/settings", name: "settings", label: "Settings", group: "Access", key: "e", scope: "admin" },
  { path: "/account", name: "account", label: "Account", key: "m" },
  { path: "/sign-in", name: "signin", label: "Sign in", open: true },
  { path: "/set-up", name: "setup", label: "Set up", open: true },
];

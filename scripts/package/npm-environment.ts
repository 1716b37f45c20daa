/** What an npm that runs a script hands on, and what would move an inner npm into the outer one's folder or have it omit the same packages. */
const OUTER =
  /^(?:npm_(?:package_|lifecycle_|command$|config_(?:local_prefix|prefix|omit|include|dry_run|json|pack_destination|global)$)|NODE_ENV$|INIT_CWD$)/i;

/** What a machine needs to be on the network and to run npm; none of a person's or a test's settings for Muster are among it. */
const OF_THE_MACHINE = /^(?:PATH|HOME|TMPDIR|LANG|TERM|npm_config_\w+|https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE)$/i;

/** The environment for an npm that works in a folder of its own. */
export function npmEnvironment(more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  return { ...only((name) => !OUTER.test(name)), ...more };
}

/** The environment of somebody who has set nothing. */
export function bareEnvironment(more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  return { ...only((name) => OF_THE_MACHINE.test(name) && !OUTER.test(name)), ...more };
}

function only(isWanted: (name: string) => boolean): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => isWanted(name)));
}

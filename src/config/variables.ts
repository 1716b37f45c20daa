import { helpOf, type SettingName } from './settings.js';

/** These may be set in either case. Lower case wins if both are set, as in curl and most programs. */
const IN_LOWER_CASE: ReadonlySet<SettingName> = new Set(['HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY']);

/** The trimmed text of the variable; undefined if it is unset or empty. */
export function textOf(env: NodeJS.ProcessEnv, name: SettingName): string | undefined {
  const lower = IN_LOWER_CASE.has(name) ? env[name.toLowerCase()]?.trim() : undefined;
  return lower || env[name]?.trim() || undefined;
}

/** The file that NAME_FILE names for a secret. */
export function fileOf(env: NodeJS.ProcessEnv, name: SettingName): string | undefined {
  return (helpOf(name).secret && env[`${name}_FILE`]?.trim()) || undefined;
}

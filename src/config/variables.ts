import { helpOf, type SettingName } from './settings.js';

/** Programs write these in either case. curl and most others go by lower case where both are set. */
const IN_LOWER_CASE: ReadonlySet<SettingName> = new Set(['HTTPS_PROXY', 'HTTP_PROXY', 'NO_PROXY']);

/** The text of the variable, trimmed; undefined where it is unset or empty. */
export function textOf(env: NodeJS.ProcessEnv, name: SettingName): string | undefined {
  const lower = IN_LOWER_CASE.has(name) ? env[name.toLowerCase()]?.trim() : undefined;
  return lower || env[name]?.trim() || undefined;
}

/** The file that NAME_FILE names for a secret. */
export function fileOf(env: NodeJS.ProcessEnv, name: SettingName): string | undefined {
  return (helpOf(name).secret && env[`${name}_FILE`]?.trim()) || undefined;
}

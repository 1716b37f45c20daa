import type { ShownSetting } from '../dashboard/pages/settings-page.js';
import { baseVariables } from './further-bases.js';
import { helpOf, SETTING_NAMES, type SettingName } from './settings.js';

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

/** The settings that are set, with the file of each that comes from one. No value is shown. */
export function settingSources(
  env: NodeJS.ProcessEnv,
): { readonly name: SettingName; readonly secret: boolean; readonly file?: string }[] {
  return SETTING_NAMES.flatMap((name) => {
    const { secret } = helpOf(name);
    const file = fileOf(env, name);
    if (textOf(env, name)) return [{ name, secret }];
    return file ? [{ name, secret, file }] : [];
  });
}

const BASE_HELP = 'Root of a further host of the API, named by entries of the catalogue.';

export function showSettings(env: NodeJS.ProcessEnv): ShownSetting[] {
  const sources = new Map(settingSources(env).map((source) => [source.name, source]));
  const bases = baseVariables(env).map(({ name, value }) => ({
    name,
    value,
    help: BASE_HELP,
    isSecret: false,
    from: 'environment' as const,
    unset: '',
  }));
  const settings = SETTING_NAMES.map((name): ShownSetting => {
    const { help, unset, secret: isSecret } = helpOf(name);
    const source = sources.get(name);
    const from = source ? (source.file === undefined ? 'environment' : 'file') : 'default';
    return { name, help, isSecret, unset, from, ...(source && !isSecret && { value: textOf(env, name) }) };
  });
  return [...settings, ...bases];
}

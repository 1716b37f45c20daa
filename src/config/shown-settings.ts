import type { ShownSetting } from '../dashboard/pages/settings-page.js';
import { baseVariables } from './further-bases.js';
import { helpOf, SETTING_NAMES, type SettingName } from './settings.js';
import { fileOf, textOf } from './variables.js';

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

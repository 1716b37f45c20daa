import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { helpOf, SETTING_NAMES, type SettingName } from '../src/config/settings.js';

// Writes the settings into the schema of the Helm chart's values: `npm run generate:docs`. Helm then refuses a setting whose name is mistyped, and one
// that is a secret. All else in the schema is written by hand.

export const CHART_SCHEMA = new URL('../deploy/chart/values.schema.json', import.meta.url);

/** The chart sets these itself. */
const SET_BY_CHART: ReadonlySet<SettingName> = new Set(['HOST', 'PORT', 'PROBE_PORT', 'MUSTER_HOME', 'TOKEN_JOURNAL']);

/** Secrets that only the API needs. */
const OF_THE_API = /^(MUSTER_ADMIN_TOKEN|METRICS_TOKEN|OIDC_CLIENT_SECRET)$/;

interface Schema {
  readonly properties: {
    settings: object;
    readonly secrets: {
      readonly properties: Readonly<Record<'shared' | 'api' | 'migrate', { readonly properties: { keys: object } }>>;
    };
  };
}

/** The schema, as JSON, with the settings that the program has. */
export function chartSchema(text: string): string {
  const schema = JSON.parse(text) as Schema;
  const { shared, api, migrate } = schema.properties.secrets.properties;
  const secrets = SETTING_NAMES.filter((name) => helpOf(name).secret);
  schema.properties.settings = settings();
  shared.properties.keys = keysOf(secrets.filter((name) => !OF_THE_API.test(name)));
  api.properties.keys = keysOf(secrets.filter((name) => OF_THE_API.test(name)));
  migrate.properties.keys = keysOf(['DATABASE_URL']);
  return `${JSON.stringify(schema, undefined, 2)}\n`;
}

function settings(): object {
  const names = SETTING_NAMES.filter((name) => !helpOf(name).secret && !SET_BY_CHART.has(name));
  const base = { type: ['string', 'null'], description: 'Root of a further host of the API.' };
  return {
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, { type: typesOf(name), description: plain(helpOf(name).help) }])),
    patternProperties: { '^(PRODUCTION|TEST)_BASE_URL_[A-Z][A-Z0-9_]{0,40}$': base },
    additionalProperties: false,
  };
}

/** Values of YAML, which makes a number of 30 and true of yes. Null takes a setting of another file of values away. */
function typesOf(name: SettingName): string[] {
  const { example } = helpOf(name);
  if (/^\d+$/.test(example)) return ['integer', 'string', 'null'];
  return /^(yes|no)$/.test(example) ? ['boolean', 'string', 'null'] : ['string', 'null'];
}

/** Links of docs/configuration.md lead nowhere from here. */
function plain(markdown: string): string {
  return markdown.replaceAll(/ ?\(?\[below\]\([^)]*\)\)?/g, '').replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1');
}

/** The keys of a Secret that hold these settings. */
function keysOf(names: readonly SettingName[]): object {
  const key = { type: ['string', 'null'], pattern: '^[-._a-zA-Z0-9]+$' };
  return {
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, { ...key, description: plain(helpOf(name).help) }])),
    additionalProperties: false,
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(CHART_SCHEMA, chartSchema(readFileSync(CHART_SCHEMA, 'utf8')));

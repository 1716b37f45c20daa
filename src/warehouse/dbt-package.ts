import { stringify } from 'yaml';
import type { StaleAfterHours } from '../core/stale-after.js';
import { CHANGES_MACROS, changesFiles } from './dbt-changes.js';
import type { DbtFiles, DbtInput } from './dbt-input.js';
import { historyFiles, stagingFiles } from './dbt-models.js';
import { dbtSources } from './dbt-sources.js';
import { listTests } from './dbt-tests.js';

/** The first line of every file: a later `muster dbt init --force` overwrites files with it. */
const HEAD = 'Written by `muster dbt init`, which overwrites it. Keep your own models in other files.';
const SQL_HEAD = `-- ${HEAD.replaceAll('`', '')}`;
const YAML_HEAD = `# ${HEAD}`;

/**
 * A package for dbt 1.10 and later over schema `warehouse`: the views as sources, whose freshness is the age of the oldest
 * proof; for each list a staging model with a key and tests, models of its history, of its changes and of the list as it was proved.
 */
export function dbtPackage(
  { lists, facts }: DbtInput,
  { staleAfterHours }: { readonly staleAfterHours: StaleAfterHours },
): ReadonlyMap<string, string> {
  const known = new Set(facts.map(({ name }) => name));
  const changing = lists.filter(({ changes }) => changes !== undefined);
  const files: DbtFiles = [
    ['dbt_project.yml', PROJECT],
    ['profiles.yml', PROFILES],
    ['models/sources.yml', dbtSources(lists, facts, staleAfterHours)],
    ...lists.flatMap((list) => [...stagingFiles(list), ...historyFiles(list), ...changesFiles(list), ...listTests(list, known)]),
    ...(changing.length > 0 ? CHANGES_MACROS : []),
  ];
  return new Map(files.map(([path, content]) => [path, typeof content === 'string' ? sql(content) : yaml(content)]));
}

/** Whether a file is one of a package that this command wrote. */
export function isWrittenByMuster(text: string): boolean {
  return text.startsWith(`${SQL_HEAD}\n`) || text.startsWith(`${YAML_HEAD}\n`);
}

const PROJECT = {
  name: 'muster',
  version: '1.0.0',
  profile: 'muster',
  'require-dbt-version': '>=1.10.0',
  'model-paths': ['models'],
  'macro-paths': ['macros'],
  'test-paths': ['tests'],
  models: { muster: { '+materialized': 'view' } },
};

/** Read by dbt when it runs inside the package; a profile named muster in ~/.dbt works too. */
const PROFILES = {
  muster: {
    target: 'default',
    outputs: {
      default: {
        type: 'postgres',
        host: "{{ env_var('PGHOST', 'localhost') }}",
        port: "{{ env_var('PGPORT', '5432') | as_number }}",
        user: "{{ env_var('PGUSER') }}",
        password: "{{ env_var('PGPASSWORD') }}",
        dbname: "{{ env_var('PGDATABASE') }}",
        schema: "{{ env_var('DBT_SCHEMA', 'analytics') }}",
        threads: 4,
      },
    },
  },
};

function yaml(value: object): string {
  return `${YAML_HEAD}\n${stringify(value, { lineWidth: 0, aliasDuplicateObjects: false })}`;
}

function sql(text: string): string {
  return `${SQL_HEAD}\n${text}`;
}

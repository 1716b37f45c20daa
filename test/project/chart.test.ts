import { readdirSync, readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { CHART_SCHEMA, chartSchema } from '../../scripts/chart-schema.js';
import { loadServerConfig } from '../../src/config/config.js';
import { SETTING_NAMES } from '../../src/config/settings.js';

// What can be said of deploy/ without Helm and without systemd. `npm run test:chart` has the rest.

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
const schema = readFileSync(CHART_SCHEMA, 'utf8');

describe('the chart', () => {
  test('knows every setting: its schema is what `npm run generate:docs` makes of it', () => {
    expect(chartSchema(schema)).toBe(schema);
  });

  test('has defaults that its schema takes, and no setting of them is a secret', () => {
    const validate = new Ajv({ allowUnionTypes: true }).compile(JSON.parse(schema) as object);
    expect([validate(parse(read('deploy/chart/values.yaml'))), validate.errors]).toEqual([true, null]);
    expect(validate({ settings: { SYNC_CORN: '0 3 * * *' } })).toBe(false);
    expect(validate({ settings: { PRODUCTION_CLIENT_SECRET: 'a' } })).toBe(false);
  });

  test('is of the version of the program', () => {
    const { version } = JSON.parse(read('package.json')) as { version: string };
    expect(parse(read('deploy/chart/Chart.yaml'))).toMatchObject({ version, appVersion: version });
  });
});

describe('the units', () => {
  const units = readdirSync(new URL('../../deploy/systemd', import.meta.url)).filter((file) => file.endsWith('.service'));
  /** The values of one directive, in order. */
  const valuesOf = (unit: string, directive: string) =>
    [...read(`deploy/systemd/${unit}`).matchAll(new RegExp(`^${directive}=(.*)$`, 'gm'))].map(([, value = '']) => value);

  test('run the commands that there are, and hand on secrets as files that they load', () => {
    expect(units).toEqual(['muster-api.service', 'muster-migrate.service', 'muster-worker@.service']);
    for (const unit of units) {
      expect(valuesOf(unit, 'ExecStart')).toEqual([
        expect.stringMatching(/^\/opt\/muster\/bin\/muster (api|worker|migrate --wait --grant-runtime muster_app)$/),
      ]);
      const loaded = valuesOf(unit, 'LoadCredential').map((value) => value.split(':')[0]);
      const variables = valuesOf(unit, 'Environment').flatMap((value) => value.split(' '));
      const files = variables.flatMap((variable) => /^\w+_FILE=%d\/(\w+)$/.exec(variable)?.[1] ?? []);
      expect(files).toEqual(loaded);
      const names = variables.map((variable) => variable.split('=')[0]!.replace(/_FILE$/, ''));
      expect([...SETTING_NAMES, 'NODE_ENV']).toEqual(expect.arrayContaining(names));
    }
  });

  test('wait for the database as long as it takes, and do not try a migration again that fails', () => {
    const values = (directive: string) => valuesOf('muster-migrate.service', directive);
    expect(values('ExecStart')).toEqual([expect.stringContaining(' migrate --wait ')]);
    expect(values('TimeoutStartSec')).toEqual(['infinity']);
    expect(values('Type')).toEqual(['oneshot']);
  });

  test('wait for the migration, and are not restarted with it', () => {
    for (const unit of units.filter((name) => name !== 'muster-migrate.service')) {
      expect(valuesOf(unit, 'Requires')).toEqual([]);
      for (const directive of ['Wants', 'After'])
        expect(valuesOf(unit, directive).join(' ').split(' ')).toContain('muster-migrate.service');
    }
  });

  test('keep the process in', () => {
    const hardening = (unit: string) =>
      read(`deploy/systemd/${unit}`).split('# The same user for all')[1]?.split('\n[Install]')[0];
    for (const unit of units) {
      expect(hardening(unit)).toBe(hardening(units[0]!));
      for (const [directive, value] of [
        ['DynamicUser', 'yes'],
        ['ProtectSystem', 'strict'],
        ['NoNewPrivileges', 'yes'],
        ['CapabilityBoundingSet', ''],
      ] as const)
        expect(valuesOf(unit, directive)).toEqual([value]);
    }
  });

  test('have an example of settings that Muster takes', () => {
    const lines = read('deploy/systemd/muster.env')
      .split('\n')
      .filter((line) => /^\w/.test(line));
    const example = Object.fromEntries(lines.map((line) => line.split('=', 2) as [string, string]));
    expect(() => loadServerConfig({ ...example, PRODUCTION_CLIENT_SECRET: 'from a file' })).not.toThrow();
    expect(SETTING_NAMES).toEqual(expect.arrayContaining(Object.keys(example)));
  });
});

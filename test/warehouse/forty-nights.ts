import { join } from 'node:path';
import { expect } from 'vitest';
import type { Database } from '../../src/db/connection/database.js';
import { openFileDestination } from '../../src/warehouse/export/destinations/file-destination.js';
import { exportResource, type Manifest } from '../../src/warehouse/export/export-resource.js';
import { onboard } from '../mirror/mirror-fixture.js';
import { mirrorRecords } from './warehouse-fixture.js';

export const NIGHTS = 40;
export const RECORDS = 30;
/** From this night on, the records have two further columns. */
const NEW_COLUMN = 12;
/** On this night, every salary has more digits than its column. */
const MISFIT = 25;

/** What the view had on a night: the number of the night, then id, salary, bonus and bonus_on as texts. */
export type NightRow = (string | null)[];

/** Exports a list on forty nights into a folder, as one Parquet file a night, and returns what its view had on each. */
export async function exportNights(db: Database, folder: string): Promise<NightRow[]> {
  const company = await onboard(db);
  const history: NightRow[] = [];
  const types = new Map<string, string>();
  for (let night = 0; night < NIGHTS; night += 1) {
    await mirrorRecords(
      db,
      company,
      Array.from({ length: RECORDS }, (_, n) => ({
        id: `e${String(n).padStart(2, '0')}`,
        hired: '2024-02-29',
        salary: 0,
        ...(night >= NEW_COLUMN && { bonus: n + 0.5, bonusOn: '2026-01-31' }),
      })),
    );
    // JSON numbers lose digits in JavaScript, so the text goes in by itself.
    const salary = night === MISFIT ? '123456789012345678901.5' : salaryOf(night);
    await db.pool.query(`UPDATE mirror.employees SET data = jsonb_set(data, '{salary}', '${salary}')`);
    const manifest = await exportNight(db, folder, night);
    for (const { name, stored_as } of manifest.columns) {
      expect(`${name} ${stored_as}`).toBe(`${name} ${types.get(name) ?? stored_as}`);
      types.set(name, stored_as!);
    }
    expect(manifest.misfits).toEqual(night === MISFIT ? { salary: RECORDS } : {});
    const { rows } = await db.pool.query<(string | null)[]>({
      text: `SELECT id, salary::text, to_jsonb(e) ->> 'bonus', to_jsonb(e) ->> 'bonus_on' FROM warehouse.employees e ORDER BY id`,
      rowMode: 'array',
    });
    history.push(...rows.map((row) => [numberOf(night), ...row]));
  }
  return history;
}

/** A number without the zeros that end it, as every reader can write it. */
export function digits(text: string | null): string | null {
  return text && text.replace(/\.0+$|(\.\d*?)0+$/, '$1');
}

/** Each night has a number with more digits than the one before: 1, 12, 123.4, … 9030.123456, and more. */
function salaryOf(night: number): string {
  const all = '123456789012345678901234567890123456789'.slice(0, 1 + (night % 38));
  const places = Math.min(18, Math.floor(night / 2));
  return all.length > places ? `${all.slice(0, all.length - places)}.${all.slice(all.length - places)}0` : '9030.123456';
}

async function exportNight(db: Database, folder: string, night: number): Promise<Manifest> {
  return exportResource({
    db,
    request: { resource: 'employees' },
    format: 'parquet',
    destination: await openFileDestination(join(folder, `night-${numberOf(night)}.parquet`)),
  });
}

function numberOf(night: number): string {
  return String(night).padStart(2, '0');
}

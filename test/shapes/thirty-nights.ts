import { expect } from 'vitest';
import type { HrShape } from './hr-shapes.js';
import { lostIn, queriesOf, viewColumns } from './kept-promises.js';
import { LAST_NIGHT, NIGHTS, type Staff } from './people.js';
import { QUESTIONS, sorted } from './questions.js';
import { recordsOf, type ShapeWorld } from './shape-world.js';

/** Nights on which every value of the records is looked for: the first ones, and those on which something becomes of them. */
const LOOKED_AT: ReadonlySet<number> = new Set([0, 1, 4, 6, 9, 12, 15, 17, 18, 19, 21, 23, LAST_NIGHT]);
/** So many records of each company are looked at, among which are odd ones. */
const LOOKED_THROUGH = 60;

/**
 * Lets all nights pass. On each of them, the columns of every view keep their name, type and place, and what was written before answers with them; and
 * nothing is lost of the records.
 */
export async function passThirtyNights(world: ShapeWorld, shape: HrShape, staffs: readonly Staff[]): Promise<void> {
  const { pool } = world.database.db;
  const queries: { readonly night: number; readonly text: string; readonly columns: readonly string[] }[] = [];
  let known: Awaited<ReturnType<typeof viewColumns>> = new Map();
  for (let night = 0; night < NIGHTS; night += 1) {
    await world.pass(night);
    const views = await viewColumns(pool, shape.name);
    for (const [view, before] of known) {
      const now = (views.get(view) ?? []).slice(0, before.length);
      expect({ night, view, columns: now }).toEqual({ night, view, columns: before });
    }
    for (const [view, columns] of views) {
      const added = columns.slice(known.get(view)?.length ?? 0);
      if (added.length === 0) continue;
      const texts = [`SELECT * FROM warehouse."${view}" LIMIT 1`, ...queriesOf(view, added)];
      for (const text of texts) {
        const { fields } = await pool.query(text);
        queries.push({ night, text, columns: fields.map(({ name, dataTypeID }) => `${name} ${dataTypeID}`) });
      }
    }
    known = views;
    if (LOOKED_AT.has(night)) await expectNothingLost(world, shape, night);
  }
  for (const { night, text, columns } of queries) {
    const { fields } = await pool.query(text);
    const now = fields.slice(0, columns.length).map(({ name, dataTypeID }) => `${name} ${dataTypeID}`);
    expect({ night, text, columns: now }).toEqual({ night, text, columns });
  }
  await expectAsProved(world, shape, staffs);
}

async function expectNothingLost({ database, served }: ShapeWorld, shape: HrShape, night: number): Promise<void> {
  for (const [companyId, records] of served) {
    const some = new Map([...records].slice(0, LOOKED_THROUGH));
    const lost = await lostIn(database.db.pool, shape, companyId, some);
    expect({ night, companyId, lost: lost.slice(0, 5), more: lost.length }).toEqual({ night, companyId, lost: [], more: 0 });
  }
}

/** At each barrier, the list with every change up to its number is the list as the service had it that night. */
async function expectAsProved({ database }: ShapeWorld, shape: HrShape, staffs: readonly Staff[]): Promise<void> {
  const { pool } = database.db;
  for (const staff of staffs) {
    const { rows: barriers } = await pool.query<{ seq: string }>(
      'SELECT seq FROM warehouse.barriers WHERE company_id = $1 AND resource = $2 ORDER BY number',
      [staff.companyId, shape.name],
    );
    expect(barriers).toHaveLength(NIGHTS - staff.from);
    for (const night of [staff.from, 12, LAST_NIGHT].filter((each) => each >= staff.from)) {
      const { rows } = await pool.query<{ id: string }>(
        `SELECT id FROM warehouse.${shape.name}_as_of_seq($1) WHERE company_id = $2 ORDER BY id COLLATE "C"`,
        [barriers[night - staff.from]!.seq, staff.companyId],
      );
      const ids = [...recordsOf(shape, staff, night).keys()].toSorted();
      expect([night, staff.companyId, rows.map(({ id }) => id)]).toEqual([night, staff.companyId, ids]);
    }
  }
}

/** A company that was walked on all nights but lately. */
export async function makeLate({ database }: ShapeWorld, [pilot]: readonly Staff[]): Promise<void> {
  await database.db.pool.query(`UPDATE muster.lists SET last_verified_at = now() - interval '3 days' WHERE company_id = $1`, [
    pilot!.companyId,
  ]);
}

/** The questions of which the query is too long, reads JSON by itself, fails, or gives another answer: with what is wrong. */
export async function wrongAnswers({ database }: ShapeWorld, shape: HrShape, staffs: readonly Staff[]): Promise<object[]> {
  const wrong: object[] = [];
  for (const { name, query, answer } of QUESTIONS) {
    const text = query(shape).trim();
    if (text.split('\n').length > 15 || /jsonb?_|->/.test(text)) wrong.push({ name, text });
    try {
      const { rows } = await database.db.pool.query<unknown[]>({ text, rowMode: 'array' });
      const [given, right] = [sorted(rows), sorted(answer(shape, staffs))];
      const [few, many] = [right.filter((row) => !given.includes(row)), given.filter((row) => !right.includes(row))];
      if (given.length !== right.length || few.length + many.length > 0)
        wrong.push({ name, rows: [given.length, right.length], lacks: few.slice(0, 3), has: many.slice(0, 3) });
    } catch (error) {
      wrong.push({ name, text, error: (error as Error).message });
    }
  }
  return wrong;
}

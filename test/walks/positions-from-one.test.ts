import { describe, expect, test } from 'vitest';
import { type Respond, records, walksOverAnswers } from './answering-service.js';

// Services that count positions from 1, as SCIM does (RFC 7644, 3.4.2.4).

const SCIM = { style: 'skip-take', skipName: 'startIndex', takeName: 'count', first: 1, size: 3 };
const FIELDS = { data: 'Resources', total: 'totalResults' };

const walk = walksOverAnswers();

/** A SCIM list: less than 1 is 1, and whatever is behind the end is empty. */
const scim =
  (length: () => number, around: (start: number) => object = () => ({ totalResults: length() })): Respond =>
  (query, body) => {
    const start = Math.max(1, Number(query.get('startIndex') ?? query.get('$skip') ?? body['startIndex']));
    const count = Number(query.get('count') ?? query.get('$top') ?? body['count']);
    const Resources = records(start, Math.min(length() + 1, start + count));
    return { body: { Resources, startIndex: start, itemsPerPage: Resources.length, ...around(start) } };
  };

describe('a list whose positions begin with 1', () => {
  test('is asked for from 1, with an overlap of one record', async () => {
    const found = await walk(
      { pager: SCIM, fields: FIELDS },
      scim(() => 8),
      scim(() => 8),
    );
    expect(found).toMatchObject({ verified: true, proof: 'join', received: 8, pages: 4, inserted: 8 });
    expect(found.asked.slice(0, 4)).toEqual([1, 3, 5, 7].map((start) => `?startIndex=${start}&count=3`));
    expect(found.again!.verify).toMatchObject({ missing: 0, compared: expect.any(Number) });
    expect(found.again!.verify).not.toHaveProperty('contradiction');
  });

  test.each([0, 1, 3, 4])('is whole with %i records, with and without a total', async (length) => {
    for (const around of [undefined, () => ({})]) {
      const entry = { pager: SCIM, fields: around ? { ...FIELDS, total: 'none' } : FIELDS };
      expect(
        await walk(
          entry,
          scim(() => length, around),
        ),
      ).toMatchObject({ verified: true, received: length });
    }
    const odata = { pager: { style: 'odata', first: 1, size: 3 }, fields: FIELDS };
    expect(
      await walk(
        odata,
        scim(() => length),
      ),
    ).toMatchObject({ verified: true, received: length });
    const body = { method: 'POST', pager: SCIM, fields: FIELDS };
    expect(
      await walk(
        body,
        scim(() => length),
      ),
    ).toMatchObject({ verified: true, received: length });
  });

  test('is walked on from its checkpoint', async () => {
    const found = await walk(
      { pager: SCIM, fields: FIELDS },
      scim(() => 8),
      scim(() => 8),
      { stopAfterPages: 2 },
    );
    expect(found).toMatchObject({ verified: true, proof: 'join', pages: 4, received: 8 });
    expect(found.asked.filter((search) => search === '?startIndex=1&count=3')).toHaveLength(1);
  });

  test('joins its pages while it moves', async () => {
    let gone = 0;
    const moving: Respond = (query, body) => {
      if (query.get('startIndex') === '3') gone = 2;
      const { Resources, ...around } = scim(() => 8 - gone)(query, body, {}).body as { Resources: { id: number }[] };
      return { body: { ...around, Resources: Resources.map(({ id }) => ({ id: id + gone })) } };
    };
    const found = await walk({ pager: SCIM, fields: FIELDS }, moving);
    // What stood at 4 is at 2 now, which the first page did not reach.
    expect(found).toMatchObject({ verified: true });
    expect(found.asked).toContain('?startIndex=2&count=3');
  });

  test('takes its own position for no sign of more', async () => {
    const next = (start: number) => ({ nextIndex: start + 3 <= 8 ? start + 3 : start });
    const entry = { pager: SCIM, fields: { ...FIELDS, total: 'none' } };
    expect(
      await walk(
        entry,
        scim(() => 8, next),
      ),
    ).toMatchObject({ verified: true, received: 8 });
  });

  test('is not proved where the service counts from 0, or the entry does not say that it counts from 1', async () => {
    const fromZero: Respond = (query) => {
      const start = Number(query.get('startIndex'));
      return { body: { Resources: records(start, Math.min(8, start + 3)), totalResults: 8 } };
    };
    expect(await walk({ pager: SCIM, fields: FIELDS }, fromZero)).toMatchObject({ verified: false });
    const { first: _, ...unsaid } = SCIM;
    expect(
      await walk(
        { pager: unsaid, fields: FIELDS },
        scim(() => 8),
      ),
    ).toMatchObject({ verified: false });
    const untold = { ...FIELDS, total: 'none' };
    expect(
      await walk(
        { pager: unsaid, fields: untold },
        scim(
          () => 8,
          () => ({}),
        ),
      ),
    ).toMatchObject({ verified: false });
  });
});

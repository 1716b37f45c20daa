import { describe, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import type { Resource } from '../../src/sandbox/company-spec.js';
import type { Lesson } from '../../src/sandbox/lessons/lesson.js';
import { LESSON_GROUPS, LESSONS } from '../../src/sandbox/lessons/registry.js';
import { alter, EXPIRED } from '../oauth/fixture.js';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import { learn } from '../warehouse/warehouse-fixture.js';
import { EMPLOYEES, LessonWorld } from './lesson-world.js';

// Each lesson of the sandbox shows what its text says: it is begun as by `muster sandbox break`, the list is mirrored by its entry of
// examples/catalogue.yaml with what the lesson adds to it, and the run is compared with the sentence that a person reads.

const world = new LessonWorld();

/** Lists in which lessons are tried that are about any list. */
const USUAL: readonly Resource[] = ['employees', 'shifts', 'notes'];
const named = (name: string) => LESSONS.get(name)!;
const groupOf = (begin: string) => LESSON_GROUPS.find(({ title }) => title.startsWith(begin))!.lessons;
const eachList = (lessons: readonly Lesson[]) =>
  lessons.flatMap(({ name, lists = USUAL }) => lists.map((resource) => [name, resource] as const));

async function expectMirrored({ companyId }: CompanyKey, resource: Resource): Promise<void> {
  expect(await mirrored(world.database.db, resource, companyId)).toEqual(upstream(world.sandbox, resource, companyId));
}

describe('the same fact in other words', () => {
  test.each(eachList(groupOf('Other spellings')))('%s: %s is verified, and again', async (name, resource) => {
    expect(named(name).see).toBe('The list is verified: Muster reads this spelling.');
    const { run, walk, company, again } = await world.meet(name, resource);
    expect(run).toMatchObject({ status: 'succeeded', attempts: 0 });
    expect(walk).toMatchObject({ verified: true, received: world.sizeOf(company, resource) });
    if (name.startsWith('total-')) expect(walk.total_records).toBe(world.sizeOf(company, resource));
    await expectMirrored(company, resource);
    expect(await again()).toMatchObject({ verified: true, received: world.sizeOf(company, resource), inserted: 0, deleted: 0 });
  });
});

describe('less usual links, codings, ids and values', () => {
  const forms = groupOf('Unusual');
  const links = forms.filter(({ act, name }) => act.kind === 'request' || name.startsWith('link-'));

  test.each(eachList(links))('%s: %s is verified', async (name, resource) => {
    expect(named(name).see).toMatch(/^The list is verified(: Muster follows the right link)?\.$/);
    const { walk, company } = await world.meet(name, resource);
    expect(walk).toMatchObject({ verified: true, received: world.sizeOf(company, resource) });
    await expectMirrored(company, resource);
  });

  test('link-host: without the host in the entry, its pages are not asked for', async () => {
    const { walk, company } = await world.meet('link-host', 'shifts', { printed: '{}' });
    expect(walk.verified).toBe(false);
    expect(walk.received).toBeLessThan(world.sizeOf(company, 'shifts'));
  });

  test.each(['id-nested', 'id-pair'])('%s: verified by the id that the entry names, and rejected without one', async (name) => {
    expect(named(name).see).toMatch(/the list is verified; without it, every record is rejected\.$/);
    const { walk } = await world.meet(name, 'employees');
    expect(walk).toMatchObject({ verified: true, received: EMPLOYEES, inserted: EMPLOYEES, rejected: 0 });
    await world.begin();
    const plain = await world.meet(name, 'employees', { printed: '{}' });
    expect(plain.walk).toMatchObject({
      verified: false,
      received: EMPLOYEES,
      inserted: 0,
      unverified_reason: 'rejected_records',
    });
    expect(plain.walk.rejected).toBeGreaterThanOrEqual(EMPLOYEES);
  });

  test.each(['forever', 'forever-west', 'always'])('%s: the value is a text beside its column', async (name) => {
    const lesson = named(name);
    expect(lesson.see).toMatch(
      /^The list is verified\. In warehouse, modified_at is null where .*; modified_at__text has it as sent\.$/,
    );
    const { walk } = await world.meet(name, 'employees', { isKnown: true });
    expect(walk).toMatchObject({ verified: true, received: EMPLOYEES, updated: EMPLOYEES });
    await learn(world.database.db);
    const { rows } = await world.database.db.pool.query(
      'SELECT modified_at AS column, modified_at__text AS text, count(*)::int FROM warehouse.employees GROUP BY 1, 2',
    );
    expect(rows).toEqual([{ column: null, text: /"([^"]*)"\.$/.exec(lesson.does)![1], count: EMPLOYEES }]);
  });
});

describe('lies', () => {
  const unverified = groupOf('Lies').filter(({ see }) => see.startsWith('The walk succeeds and is not verified'));

  test.each(eachList(unverified))(
    '%s: %s is not verified for the reason that is told, and every row stays',
    async (name, resource) => {
      const { see } = named(name);
      const reason = RegExp(`${resource}: (\\w+)`).exec(see) ?? /: (\w+)/.exec(see);
      const { walk, company } = await world.meet(name, resource, { isKnown: true });
      expect(walk).toMatchObject({ status: 'succeeded', verified: false, unverified_reason: reason![1], deleted: 0 });
      await expectMirrored(company, resource);
    },
  );

  const failing = eachList([named('denied'), named('late-error')]);
  test.each(failing)('%s: %s waits for a right answer', async (name, resource) => {
    expect(named(name).see).toMatch(/\bthe run waits, and .* once the service answers correctly\. Every row stays\.$/i);
    const seen = await world.meet(name, resource, { isKnown: true });
    expect(seen.run).toMatchObject({ status: 'queued', attempts: 1 });
    expect(await world.atLast(seen)).toMatchObject({ status: 'succeeded', walks: [{ verified: true, deleted: 0 }] });
    await expectMirrored(seen.company, resource);
    await world.begin();
    expect((await world.meet(name, resource)).run).toMatchObject({
      status: 'queued',
      attempts: 1,
      walks: [{ verified: false }],
    });
  });

  test.each(named('same-etag').lists!)('same-etag: %s follows what changes', async (resource) => {
    const { walk, company, again } = await world.meet('same-etag', resource);
    expect(walk).toMatchObject({ verified: true, received: world.sizeOf(company, resource) });
    const list = world.sandbox.list(company.companyId, resource);
    list.change(2, list.texts()[2]!.replace('{', '{"marker":1,'));
    expect(await again()).toMatchObject({ verified: true, updated: 1 });
    await expectMirrored(company, resource);
  });
});

describe('faults that pass', () => {
  const faults = groupOf('Faults that pass');
  const waiting = faults.filter(({ see }) => !see.endsWith('the list is verified.') && !see.startsWith('The list'));

  test.each(waiting.map(({ name }) => name))('%s: the run waits, and succeeds in the end', async (name) => {
    const seen = await world.meet(name, 'employees', { isKnown: true });
    expect(seen.run).toMatchObject({ status: 'queued', attempts: 1 });
    if (/cannot be read/.test(named(name).see)) {
      expect(seen.walk.error!.message).toMatch(/cannot be read/);
      expect(seen.walk.error!.message).not.toMatch(/broke\b/);
    }
    expect(await world.atLast(seen)).toMatchObject({
      status: 'succeeded',
      walks: [{ verified: true, received: EMPLOYEES, deleted: 0 }],
    });
    await world.begin();
    expect((await world.meet(name, 'employees')).run).toMatchObject({ status: 'queued', attempts: 1 });
  });

  test.each(['long-header', 'slow-down', 'limit-date'])('%s does not keep the list from being verified', async (name) => {
    expect(named(name).see).toMatch(/the list is verified\.$/i);
    const before = world.clock.now();
    const { run, walk } = await world.meet(name, 'employees');
    expect(run).toMatchObject({ status: 'succeeded', attempts: 0 });
    expect(walk).toMatchObject({ verified: true, received: EMPLOYEES });
    if (name === 'slow-down') expect(world.clock.now() - before).toBeGreaterThanOrEqual(2_000);
  });
});

describe('what happens at every service', () => {
  describe.each(['forbid', 'unpaid', 'absent'])('%s', (name) => {
    const says = { service_says: expect.any(String) };
    const failed = { status: 'failed', walks: [{ status: 'failed', error: { code: 'service_refused' }, ...says }] };

    test('a list that was never read fails at once, or is unavailable where it is optional', async () => {
      expect(named(name).see).toMatch(/a list that was never read fails at once/);
      if (name !== 'forbid') expect(named(name).see).toMatch(/With `optional: true`, a list that was never read is unavailable/);
      expect((await world.meet(name, 'employees', { printed: '{}' })).run).toMatchObject({ attempts: 0, ...failed });
      await world.begin();
      const { run } = await world.meet(name, 'employees', { printed: 'optional: true' });
      expect(run).toMatchObject({ status: 'succeeded', walks: [{ unverified_reason: 'unavailable', ...says }] });
    });

    test.each(['{}', 'optional: true'])('a list that was read is put off, and then it fails (%s)', async (printed) => {
      expect(named(name).see).toMatch(/^A list that was read before is retried for up to an hour and then fails;/);
      const seen = await world.meet(name, 'employees', { printed, isKnown: true });
      expect(seen.run).toMatchObject({ ...failed, status: 'queued' });
      expect(await world.atLast(seen)).toMatchObject(failed);
      await expectMirrored(seen.company, 'employees');
    });
  });

  test('shrink: the deletions wait in a hold', async () => {
    const { walk, company } = await world.meet('shrink', 'employees', { isKnown: true });
    expect(walk).toMatchObject({ verified: true, received: EMPLOYEES / 2, deleted: 0 });
    expect(await world.database.db.prisma.hold.findMany()).toMatchObject([{ count: EMPLOYEES / 2, status: 'open' }]);
    world.sandbox.lessons.mend();
    await expectMirrored(company, 'employees');
  });
});

describe('the authorization', () => {
  test.each(groupOf('Odd answers').map(({ name }) => name))(
    '%s: the run waits, and the company keeps its authorization',
    async (name) => {
      expect(named(name).see).toMatch(/^The run waits; .* The company keeps its authorization\.$/);
      const { company, harness, sync, status } = await world.authorized();
      world.break(name, company);
      const run = await sync();
      expect(run).toMatchObject({ status: 'queued', attempts: 1 });
      expect(await status()).toEqual(['active', null]);
      await alter(world.database.db, company, EXPIRED);
      const end = await world.atLast({ run, harness });
      expect(end).toMatchObject({ status: 'succeeded', walks: [{ verified: true }, { verified: true }] });
      expect(await status()).toEqual(['active', null]);
    },
  );

  test('revoke: the run fails, and the company must authorize again', async () => {
    const { company, sync, status } = await world.authorized();
    world.break('revoke', company);
    expect(await sync()).toMatchObject({ status: 'failed', error: { code: 'reauthorization_required' } });
    expect(await status()).toEqual(['reauthorization_required', 'token_refused']);
  });

  test.each([true, false])('unauthorized: the list alone fails (read before: %s)', async (isKnown) => {
    const { company, harness, sync, status } = await world.authorized({ isKnown });
    world.break('unauthorized', company, 'departments');
    const run = await world.atLast({ run: await sync(), harness });
    expect(run).toMatchObject({ status: 'failed', walks: [{ verified: true }, { status: 'failed' }] });
    expect(await status()).toEqual(['active', null]);
  });
});

/** A line that a promise rests on, and what it is broken into. */
export interface Mutation {
  /** What no longer holds. */
  readonly promise: string;
  readonly file: string;
  readonly line: string;
  readonly becomes: string;
  /** Tests of which one must fail. */
  readonly tests: readonly string[];
}

export const MUTATIONS: readonly Mutation[] = [
  {
    promise: 'a page that does not join is left',
    file: 'src/pagers/offset.ts',
    line: 'const counts = state.plain || state.offset === 0 || received.repeats > 0;',
    becomes: 'const counts = true || received.repeats > 0;',
    tests: ['test/pagers/offset-simulation.test.ts', 'test/walks/simulation.test.ts'],
  },
  {
    promise: 'every further page begins one record early',
    file: 'src/pagers/offset.ts',
    line: 'offset: plain ? end : end - 1,',
    becomes: 'offset: end,',
    tests: ['test/pagers/offset.test.ts'],
  },
  {
    promise: 'a list by page number is proved by two passes',
    file: 'src/pagers/page-number.ts',
    line: "linkage(): 'none' {\n    return 'none';",
    becomes: "linkage(): 'none' {\n    return 'join' as never;",
    tests: ['test/walks/simulation.test.ts'],
  },
  {
    promise: 'a link is followed on the same origin only',
    file: 'src/pagers/next-link.ts',
    line: 'if (address.origin !== new URL(answer.url).origin)',
    becomes: 'if (address.origin === "null")',
    tests: ['test/pagers/next-link.test.ts'],
  },
  {
    promise: 'a token that leads back ends the pass',
    file: 'src/pagers/chain.ts',
    line: 'if (token === state.token || received.hasToken(token)) {',
    becomes: 'if (token === state.token) {',
    tests: ['test/pagers/continuation.test.ts'],
  },
  {
    promise: 'the distinct records must agree with the total',
    file: 'src/walks/verification.ts',
    line: 'if (total !== undefined && total !== distinct)',
    becomes: 'if (total !== undefined && total < 0)',
    tests: ['test/walks/verification.test.ts', 'test/walks/walk-faults.test.ts'],
  },
  {
    promise: 'a walk with rejected records proves nothing',
    file: 'src/walks/verification.ts',
    line: 'if (findings.rejected > 0)',
    becomes: 'if (findings.rejected > 1_000_000)',
    tests: ['test/walks/verification.test.ts', 'test/walks/walk-faults.test.ts'],
  },
  {
    promise: 'a list seen in another order joins nothing',
    file: 'src/walks/walk-verdict.ts',
    line: "return linkage === 'join' && (order === 'unstable' || unstable) ? 'none' : linkage;",
    becomes: "return linkage === 'join' && order === 'unstable' ? 'none' : linkage;",
    tests: ['test/walks/simulation.test.ts'],
  },
  {
    promise: 'a record that came with another text is compared',
    file: 'src/unchanged/skip-unchanged.ts',
    line: 'return repeats.every((n) => this.#recent.hasSame(recent, n));',
    becomes: 'return repeats.every((n) => this.#recent.hasSame(recent, n) || true);',
    tests: ['test/unchanged/simulation.test.ts', 'test/unchanged/skip-unchanged.test.ts'],
  },
  {
    promise: 'a record that came before the remembered pages counts as another text',
    file: 'src/unchanged/recent-pages.ts',
    line: 'return false;',
    becomes: 'return true;',
    tests: ['test/unchanged'],
  },
  {
    promise: 'only the very last walk of a list is a baseline',
    file: 'src/db/tables/walk-opening.ts',
    line: 'AND b.reusable AND b.epoch = list.epoch - 1 AND',
    becomes: 'AND b.reusable AND b.epoch <= list.epoch AND',
    tests: ['test/unchanged/skip-unchanged.test.ts'],
  },
  {
    promise: 'who lost the list cannot write to it',
    file: 'src/mirror/page-writer.ts',
    line: 'AND resource = :resource AND epoch = :epoch::bigint FOR UPDATE',
    becomes: 'AND resource = :resource FOR UPDATE',
    tests: ['test/runs/takeover.test.ts', 'test/mirror/page-writer.test.ts'],
  },
  {
    promise: 'who lost the run takes no list',
    file: 'src/db/tables/walk-opening.ts',
    line: 'muster.require(opened.id IS NOT NULL)',
    becomes: 'true',
    tests: ['test/runs/takeover.test.ts'],
  },
  {
    promise: 'a commit that cannot update every row that differs is taken back',
    file: 'src/mirror/page-writer.ts',
    line: 'AND muster.require(counted.updated = (SELECT count(*) FROM rewritten))',
    becomes: '',
    tests: ['test/mirror/page-writer.test.ts'],
  },
  {
    promise: 'whether a list is empty is asked once it is taken',
    file: 'src/walks/walk-store.ts',
    line: 'baseline === null && (await isEmptyList(this.#db, list));',
    becomes: 'baseline === null;',
    tests: ['test/walks/walk-store.test.ts'],
  },
  {
    promise: 'pages in another order than before are looked into',
    file: 'src/unchanged/skip-unchanged.ts',
    line: 'return this.#baseline.pages.length > 0 && this.#inPlace === this.#baseline.pages.length;',
    becomes: 'return this.#baseline.pages.length > 0;',
    tests: ['test/unchanged', 'test/walks'],
  },
  {
    promise: 'a worker and the database agree on how many pages were committed',
    file: 'src/mirror/page-writer.ts',
    line: "AND w.status = 'running' AND w.pages = :pagesBefore",
    becomes: "AND w.status = 'running' AND w.pages >= 0 * :pagesBefore",
    tests: ['test/runs/takeover.test.ts', 'test/walks'],
  },
  {
    promise: 'a large deletion waits for a person',
    file: 'src/mirror/reconcile.ts',
    line: 'return count >= guard.rows && (count > guard.share * living || count === living);',
    becomes: 'return count >= guard.rows && count > 2 * living;',
    tests: ['test/mirror/holds.test.ts'],
  },
  {
    promise: 'a hold of an older walk cannot be approved',
    file: 'src/mirror/holds.ts',
    line: 'if (!walk || walk.epoch !== walk.newest) {',
    becomes: 'if (!walk) {',
    tests: ['test/mirror/holds.test.ts'],
  },
  {
    promise: 'changes are numbered in the order in which they can be read',
    file: 'src/db/tables/change-batches.ts',
    line: "set_config('jit', 'off', true) FROM muster.change_sequence FOR UPDATE`",
    becomes: "set_config('jit', 'off', true)`",
    tests: ['test/mirror/change-feed.test.ts'],
  },
  {
    promise: 'data is compared by its bytes',
    file: 'src/mirror/page-writer.ts',
    line: 'record_image_ne(ROW(t.data), ROW(s.data))',
    becomes: 't.data <> s.data',
    tests: ['test/mirror', 'test/walks/mirror-equality.test.ts', 'test/walks/histories.test.ts'],
  },
  {
    promise: 'a new pair replaces the pair that was spent, and no other',
    file: 'src/db/tables/tokens.ts',
    line: 'AND (epoch = ${spent.epoch} OR refresh_token IN (${spent.refreshToken}, ${pair.refreshToken}))',
    becomes: '',
    tests: ['test/oauth'],
  },
  {
    promise: 'one process at a time refreshes a token',
    file: 'src/db/tables/tokens.ts',
    line: 'AND (lease_until IS NULL OR lease_until <= now())\n    RETURNING epoch',
    becomes: 'RETURNING epoch',
    tests: ['test/oauth'],
  },
  {
    promise: 'a refresh that was not written down is not sent',
    file: 'src/oauth/refresh-attempt.ts',
    line: 'if (!begun) throw tokenBusy(this.#company);',
    becomes: '',
    tests: ['test/oauth'],
  },
  {
    promise: 'what is answered for a removed company is dropped',
    file: 'src/oauth/grant-store.ts',
    line: "if (await wasRemovedSince(tx, company, origin.since)) throw new RolledBack('removed');",
    becomes: '',
    tests: ['test/oauth/removal.test.ts'],
  },
  {
    promise: 'a pair that the database refuses is set aside',
    file: 'src/oauth/refresh-attempt.ts',
    line: 'if (unanswered === 0) return false;',
    becomes: 'if (unanswered >= 0) return false;',
    tests: ['test/oauth/lost-database.test.ts'],
  },
  {
    promise: 'a state does not give its link away',
    file: 'src/oauth/authorization.ts',
    line: 'isWithdrawn || !link.isStarter ?',
    becomes: 'isWithdrawn ?',
    tests: ['test/oauth/authorization.test.ts'],
  },
];

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { brokenPage, connectedPage, failurePage } from '../../../src/api/companies/connect-outcomes.js';
import { BUILT_IN_TEXTS, languageFor } from '../../../src/api/companies/connect-texts.js';
import type { AuthorizationFailure } from '../../../src/oauth/authorization.js';

const FAILURES: Record<AuthorizationFailure, true> = {
  unknown_link: true,
  expired_link: true,
  completed_link: true,
  not_configured: true,
  cancelled: true,
  unknown_state: true,
  expired_state: true,
  spent_state: true,
  refused_code: true,
  wrong_company: true,
  removed_company: true,
  service_down: true,
  unusable_grant: true,
};
const ENGLISH = languageFor(BUILT_IN_TEXTS, undefined);
const failures = Object.keys(FAILURES) as AuthorizationFailure[];

test('docs/authorization.md lists every page with its status, and no other', () => {
  const document = readFileSync(new URL('../../../docs/authorization.md', import.meta.url), 'utf8');
  const listed = [...document.matchAll(/^\| ([^|]+) \| (\d{3}) \|/gm)].map(([, title, status]) => `${title} ${status}`);
  const connected = [true, false].map((created) =>
    connectedPage({ created, syncing: true, company: undefined, onward: undefined }, ENGLISH),
  );
  const pages = [
    ...connected,
    ...failures.map((failure) => failurePage({ failure }, undefined, ENGLISH)),
    brokenPage('unavailable', ENGLISH),
    brokenPage('failed', ENGLISH),
  ];
  expect(new Set(listed)).toEqual(new Set(pages.map(({ title, status }) => `${title} ${status}`)));
});

test('every page that connects nothing has a way on, with a fresh start and without', () => {
  const again = 'https://muster.example/connect/token';
  for (const failure of failures) {
    expect(failurePage({ failure, again }, undefined, ENGLISH).action).toEqual({
      label: 'Start again',
      href: `${again}?go=1`,
    });
    const { text, action } = failurePage({ failure }, undefined, ENGLISH);
    expect([action, text.join(' ')]).toEqual([undefined, expect.stringMatching(/[Aa]sk|[Oo]pen|[Tt]ell/)]);
  }
});

import type { Effect } from '../faults.js';
import { type FetchedPage, told, withHeader, withMembers, withTold } from './answered-page.js';
import { type Lesson, SEVERAL_PAGES } from './lesson.js';

const VERIFIED = 'The list is verified.';

function link(name: string, does: string, change: (address: URL) => string, entry?: string): Lesson {
  const rewrite = (page: FetchedPage) => {
    const next = told(page, 'next');
    return next === undefined ? page : withTold(page, 'next', JSON.stringify(change(new URL(JSON.parse(next) as string))));
  };
  return {
    name,
    does,
    see: VERIFIED,
    lists: ['shifts'],
    records: SEVERAL_PAGES,
    ...(entry !== undefined && { entry }),
    act: { kind: 'page', change: rewrite },
  };
}

const ELSEWHERE = 'api-7.internal.example';

const LINKS: readonly Lesson[] = [
  link(
    'link-https',
    'Links have the scheme https, which the sandbox does not support.',
    ({ host, pathname, search }) => `https://${host}${pathname}${search}`,
  ),
  link(
    'link-port',
    'Links have another port of the same host.',
    ({ protocol, hostname, pathname, search }) => `${protocol}//${hostname}:8443${pathname}${search}`,
  ),
  link(
    'link-host',
    'Links lead to an internal host of the service.',
    ({ pathname, search }) => `http://${ELSEWHERE}${pathname}${search}`,
    `pager: { style: next-link, sizeName: $top, size: 50, hosts: [${ELSEWHERE}] }`,
  ),
  {
    name: 'link-relative',
    does: 'Links are relative, and @odata.context names another host.',
    see: VERIFIED,
    lists: ['shifts'],
    records: SEVERAL_PAGES,
    act: { kind: 'page', change: relative },
  },
  {
    name: 'link-bare-parameter',
    does: 'The Link header has another link before the next page, with a parameter that has no value.',
    see: 'The list is verified: Muster follows the right link.',
    lists: ['positions'],
    records: SEVERAL_PAGES,
    act: {
      kind: 'page',
      change: (page) => withHeader(page, 'link', `</app.css>; rel=preload; as=style; nopush, ${String(page.headers['link'])}`),
    },
  },
];

function relative(page: FetchedPage): FetchedPage {
  const next = told(page, 'next');
  const away = withMembers(page, { '@odata.context': `"https://${ELSEWHERE}/odata/$metadata#shifts"` });
  if (next === undefined) return away;
  const { pathname, search } = new URL(JSON.parse(next) as string);
  return withTold(away, 'next', JSON.stringify(`${pathname}${search}`));
}

function coding(name: string, does: string, effect: Effect): Lesson {
  return { name: `coding-${name}`, does, see: VERIFIED, act: { kind: 'request', effect } };
}

const CODINGS: readonly Lesson[] = [
  coding('utf8', 'Responses have Content-Encoding: UTF-8, which is no coding.', named('UTF-8')),
  coding('none', 'Responses have Content-Encoding: none, which is no coding.', named('none')),
  coding('br', 'Responses are compressed with br.', { kind: 'encode', coding: 'br' }),
  coding('deflate', 'Responses are compressed with deflate.', { kind: 'encode', coding: 'deflate' }),
];

function named(name: string): Effect {
  return { kind: 'alter', headers: { 'content-encoding': name } };
}

/** Changes each record. `change` gets its JSON text without the outer braces, so that numbers keep every digit. */
function records(change: (members: string) => string): Lesson['act'] {
  const changed = (text: string) => `{${change(text.slice(1, -1))}}`;
  return { kind: 'page', change: (page) => ({ ...page, records: page.records.map(changed) }) };
}

const IDS: readonly Lesson[] = [
  {
    name: 'id-nested',
    does: 'The id of a record is inside it: {"attributes": {"id": {"value": "…"}}}.',
    see: 'With a dot path as id in the catalogue the list is verified; without it, every record is rejected.',
    lists: ['employees'],
    entry: 'id: [attributes.id.value]',
    act: records((members) => members.replace(/^"uid":("[^"]*")/, '"attributes":{"id":{"value":$1}}')),
  },
  {
    name: 'id-pair',
    does: 'Records have no id of their own: two members together identify them.',
    see: 'With an id of two members in the catalogue the list is verified; without it, every record is rejected.',
    lists: ['employees'],
    entry: 'id: [[employeeNumber, hireDate]]',
    act: records((members) => members.replace(/^"uid":"[^"]*",/, '')),
  },
];

function value(name: string, text: string): Lesson {
  return {
    name,
    does: `Every record has "modifiedAt": "${text}".`,
    see: 'The list is verified. In warehouse, modified_at is null where the value is out of range; modified_at__text has it as sent.',
    act: records((members) => members.replace(/"modifiedAt":"[^"]*"/, `"modifiedAt":"${text}"`)),
  };
}

/** Times at the limits of a warehouse. */
const VALUES: readonly Lesson[] = [
  value('forever', '9999-12-31T23:59:59.9999999Z'),
  value('forever-west', '9999-12-31T23:59:59-12:00'),
  value('always', '0001-01-01T00:00:00+01:00'),
];

/** Links, codings, ids and values in unusual forms. */
export const FORMS: readonly Lesson[] = [...LINKS, ...CODINGS, ...IDS, ...VALUES];

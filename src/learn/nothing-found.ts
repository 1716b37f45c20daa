import type { FoundPaging } from './find-paging.js';
import type { NoLook } from './first-look.js';
import type { LearnedList } from './learned-list.js';
import type { ListView } from './list-view.js';
import type { ListAddress, Probing } from './probing.js';

/** The reason why there is no entry. */
interface Why {
  readonly address: ListAddress;
  /** No request brought a page; this is the last outcome. */
  readonly last?: NoLook['last'];
  readonly isEmpty?: boolean;
  readonly isSpent?: boolean;
  /** Pages came, and no style of paging fits. */
  readonly view?: ListView;
  readonly paging?: FoundPaging;
}

const OPTIONS =
  'Give required parameters with --query NAME=VALUE (or --body NAME=VALUE for a POST), and --method POST if the list is read by POST.';

/** The report if nothing fits: the findings, and what to try next. */
export function nothingFound(probing: Probing, why: Why): LearnedList {
  return {
    outcome: 'nothing',
    findings: findingsOf(why),
    lookUp: adviceFor(why),
    entry: undefined,
    samples: [],
    requests: probing.sent,
  };
}

function findingsOf({ last, isEmpty, isSpent, view, paging }: Why): LearnedList['findings'] {
  const one = (says: string, requests: readonly number[]) => [{ about: 'paging' as const, says, requests }];
  if (last?.kind === 'no-list') return one(`The service answered ${last.status} with ${last.problem}.`, [last.request]);
  if (last) {
    const { error, status, request } = last;
    if (status === null || isSuccess(status)) return one(`No usable response came: ${error.message}.`, [request]);
    const says = error.serviceSays === undefined ? '' : ` It says: "${error.serviceSays}"`;
    return one(`The service answered ${status}.${says}`, [request]);
  }
  if (isEmpty) return one('The list has no records for this company, so nothing shows how it is paged.', [1]);
  if (isSpent) return one('No entry was found within the allowed requests and time.', []);
  const page = view!.reference;
  const size = paging?.size ? ` ${paging.size.name} is the size of a page.` : '';
  return one(
    `A page of ${page.keys.length} records came, with the records in ${view!.dataPath.join('.') || 'the response itself'}.${size} No known parameter leads to another page.`,
    [page.request],
  );
}

function adviceFor({ last, address, isEmpty, isSpent, view }: Why): readonly string[] {
  const status = last?.status ?? 0;
  if (isSuccess(status)) return ['Look up the address of the list: this address gives something else.', OPTIONS];
  if (status === 401 || status === 403)
    return [
      'The authorization does not include this list: look up which scope or role it needs, and have the company authorize again.',
    ];
  if (status === 404)
    return [
      "Look up the path: Muster appends it to the environment's base URL and replaces {company_id} with the company's id. The company may also not have this list.",
      OPTIONS,
    ];
  if (status === 405) return [`The list is not read by ${address.method}: look up the method.`, OPTIONS];
  if (last) return ["Look up the list's required parameters.", OPTIONS];
  if (isEmpty) return ['Try a company that has a few dozen records in this list.'];
  if (isSpent) return ['Give what you know with --query, --method and the path, so that fewer requests are needed.', OPTIONS];
  const members = [...new Set(view!.tallies.flatMap(({ numbers }) => [...numbers.keys()]))].slice(0, 10);
  return [
    `Look up the names of the parameters that ask for a later page.${members.length > 0 ? ` Numbers are in ${members.join(', ')}.` : ''}`,
    'docs/configuration.md describes every style of paging: with the names, write the entry yourself.',
    OPTIONS,
  ];
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

import type { ComponentChildren, JSX } from 'preact';
import { ENVIRONMENTS } from '../../core/company.js';
import { AsCommands, type Command, get } from './action-form.js';
import { DataTable, type DataTableProps } from './data-table.js';
import { Field, Select } from './fields.js';
import type { PageContent } from './layout.js';
import type { PageRequest } from './page-request.js';
import { Link, numberText, stateText } from './shown-values.js';
import { useAddress, useHere, useView } from './view.js';

export interface ListResponse<T> {
  readonly data: readonly T[];
  readonly next_cursor: string | null;
  readonly previous_cursor?: string;
  /** How many items match, on all pages. */
  readonly total?: number;
}

/** The filters of the address that have a value. */
type Filters = Readonly<Record<string, string>>;

export interface ListProps<T> {
  readonly list: ListResponse<T>;
  readonly filters: Filters;
}

/** The input of a filter, or null if only links set the filter. */
type FilterInput = (name: string, filters: Filters) => JSX.Element | null;

interface ListPageParts<Row> {
  /** The page and its part with the items have the same name as the call: /audit shows #audit from /api/audit. */
  readonly path: string;
  readonly title: string;
  readonly limit: number;
  /** The filters by their names in the address, which the API has as well. */
  readonly filters: Readonly<Record<string, FilterInput>>;
  /** The filters of an address that names none of these. */
  readonly defaults?: Filters;
  readonly lead?: ComponentChildren;
  /** The heading above the filters. Default: the title and the lead. */
  readonly Head?: () => JSX.Element;
  /** The list is also given as one CSV file (list-csv.ts). */
  readonly hasCsv?: boolean;
  /** The accessible name of the part with the items. */
  readonly label: string;
  readonly Items: (props: ListProps<Row>) => JSX.Element;
  /** Further commands, after the call of the list. */
  readonly useFurtherCommands?: (props: ListProps<Row>) => readonly Command[];
}

/** A page with a list: filters that the address keeps, the items, links to other pages of the list, and commands. */
export function listPage<Row>(parts: ListPageParts<Row>): (request: PageRequest) => Promise<PageContent> {
  const { path, title, limit, defaults = {} } = parts;
  return async ({ ask, query }) => {
    const unnamed = Object.entries(defaults).filter(([name]) => !query.has(name));
    const filters = { ...Object.fromEntries(unnamed), ...filtersOf(query, Object.keys(parts.filters)) };
    const list = await ask<ListResponse<Row>>(listAddress(`/api${path}`, { ...filters, ...filtersOf(query, ['cursor']), limit }));
    return { title, body: <ListView {...parts} found={{ list, filters }} /> };
  };
}

function ListView<Row>({ found, ...parts }: ListPageParts<Row> & { readonly found: ListProps<Row> }) {
  const { path, title, limit, filters, lead, Head, label, hasCsv, Items, useFurtherCommands } = parts;
  const further = useFurtherCommands?.(found) ?? [];
  return (
    <>
      {Head ? <Head /> : <h1>{title}</h1>}
      {lead && <p class="lead">{lead}</p>}
      <FilterForm path={path}>{Object.entries(filters).map(([name, input]) => input(name, found.filters))}</FilterForm>
      <section id={path.slice(1)} aria-label={label}>
        <Found path={path} hasCsv={hasCsv} {...found} />
        <Items {...found} />
        <Pages path={path} filters={found.filters} next={found.list.next_cursor} list={found.list} limit={limit} />
        <AsCommands commands={[get('This list', listAddress(`/api${path}`, found.filters)), ...further]} />
      </section>
    </>
  );
}

interface FoundProps extends ListProps<unknown> {
  readonly path: string;
  readonly hasCsv: boolean | undefined;
}

/** Above the items: how many match, the way to the whole list, and all that match as a file. */
function Found({ path, hasCsv, list, filters }: FoundProps) {
  const { data, total } = list;
  const address = useAddress();
  const clear = isNarrowed(filters) && data.length > 0 && <Link to={path}>Clear the filters</Link>;
  if (data.length === 0 || !(clear || hasCsv || total !== undefined)) return null;
  return (
    <div class="found">
      {total !== undefined && (
        <p class="count">{`${numberText(total)} ${isNarrowed(filters) ? (total === 1 ? 'matches' : 'match') : 'in all'}`}</p>
      )}
      {clear}
      {hasCsv && (
        <a href={address(listAddress(`${path}.csv`, filters))} download>
          Download as CSV
        </a>
      )}
    </div>
  );
}

/** Whether filters leave items out. Others only order them. */
function isNarrowed({ sort: _sort, order: _order, ...narrowing }: Filters): boolean {
  return Object.keys(narrowing).length > 0;
}

interface FoundTableProps<Row> extends ListProps<Row>, Pick<DataTableProps<Row>, 'caption' | 'columns'> {
  readonly keyOf?: (row: Row) => string;
  /** Shown if no item matches the filters, and if there is none at all. */
  readonly empty: readonly [filtered: string, unfiltered: ComponentChildren];
}

/** The items of a list as a table. */
export function FoundTable<Row>({ list, filters, empty: [filtered, unfiltered], keyOf = idOf, ...table }: FoundTableProps<Row>) {
  const path = useHere().split('?')[0]!;
  const { sort, order, ...narrowing } = filters;
  const sorting = {
    by: sort,
    isDescending: order === 'desc',
    addressOf: (by: string, isDescending: boolean) =>
      listAddress(path, { ...narrowing, sort: by, ...(isDescending && { order: 'desc' }) }),
  };
  const empty = isNarrowed(filters) ? <NoMatch text={filtered} path={path} /> : unfiltered;
  return <DataTable {...table} rows={list.data} keyOf={keyOf} empty={empty} sorting={sorting} />;
}

/** Says that the filters leave nothing, and leads to the whole list. */
function NoMatch({ text, path }: { readonly text: string; readonly path: string }) {
  return (
    <>
      {text} <Link to={path}>Clear the filters</Link>
    </>
  );
}

const idOf = (row: unknown) => (row as { readonly id: string }).id;

/** The parameters of the query that have one of these names and a value. */
export function filtersOf(query: URLSearchParams, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, query.get(name)?.trim() ?? '']).filter(([, value]) => value !== ''));
}

export function listAddress(path: string, filters: Readonly<Record<string, string | number>>): string {
  const query = new URLSearchParams(Object.entries(filters).map(([name, value]) => [name, String(value)])).toString();
  return query === '' ? path : `${path}?${query}`;
}

/** A form whose fields become the address. With scripts the list follows each change; without them, a button sends the form. */
function FilterForm({ path, children }: { readonly path: string; readonly children: ComponentChildren }) {
  const address = useAddress();
  const list = `#${path.slice(1)}`;
  return (
    <form
      class="filters"
      method="get"
      action={address(path)}
      role="search"
      hx-get={address(path)}
      hx-trigger="change, input delay:300ms, submit"
      hx-target={list}
      hx-select={list}
      hx-swap="outerHTML"
      hx-push-url="true"
    >
      {children}
      <button>Show</button>
    </form>
  );
}

/** A filter that only links set. */
export const HIDDEN: FilterInput = () => null;

export function search(
  label: string,
  maxLength: number,
  more: { readonly placeholder?: string; readonly pattern?: string } = {},
): FilterInput {
  return (name, filters) => (
    <Field label={label}>
      <input type="search" name={name} value={filters[name]} maxLength={maxLength} {...more} />
    </Field>
  );
}

/** `none`: the text of the option that chooses nothing. */
export function choice(
  label: string,
  values: readonly string[],
  { none = 'all', textOf = stateText }: { readonly none?: string; readonly textOf?: (value: string) => string } = {},
): FilterInput {
  const options = values.map((value) => [value, textOf(value)] as const);
  return (name, filters) => <Select label={label} name={name} options={[['', none], ...options]} chosen={filters[name]} />;
}

/** Part of the name of a company, or the beginning of its id. */
export const COMPANY = search('Company', 100, { placeholder: 'name or id' });
/** The id of a company by which a link leads here; other filters keep it. */
export const ONE_COMPANY: FilterInput = (name, filters) =>
  filters[name] === undefined ? null : <OneCompany name={name} value={filters[name]} />;

function OneCompany({ name, value }: { readonly name: string; readonly value: string }) {
  const path = useHere().split('?')[0]!;
  return (
    <p class="between">
      <input type="hidden" name={name} value={value} />
      Only the company <code>{value}</code>. <Link to={path}>All companies</Link>
    </p>
  );
}
export const ENVIRONMENT = choice('Environment', ENVIRONMENTS);
export const RESOURCE = search('List', 41, { pattern: '[a-z][a-z0-9_]*', placeholder: 'employees' });

interface PagesProps {
  readonly path: string;
  readonly filters: Filters;
  readonly next: string | null;
  /** The page of the list and its most items, for the way back and the count. Without these, only the way forward is shown. */
  readonly list?: ListResponse<unknown>;
  readonly limit?: number;
}

/** Links to other pages of the list, and which items this one shows. `at` in an address is the number of the first. */
export function Pages({ path, filters, next, list, limit = 0 }: PagesProps) {
  const query = new URLSearchParams(useView().address.split('?')[1]);
  const isFirst = query.get('cursor') === null;
  const previous = list?.previous_cursor;
  const shown = list?.data.length ?? 0;
  const at = isFirst || (list && previous === undefined) ? 1 : Number(/^[1-9]\d{0,8}$/.exec(query.get('at') ?? '')?.[0] ?? 0);
  const position = (number: number) => (at > 0 ? { at: Math.max(1, number) } : {});
  if (isFirst && next === null) return <Counted at={1} shown={shown} total={list?.total} />;
  return (
    <nav class="pages" aria-label="Pages of the list">
      <Counted at={at} shown={shown} total={list?.total} />
      {!isFirst && <Link to={listAddress(path, filters)}>First page</Link>}
      {!isFirst && previous !== undefined && (
        <Link to={listAddress(path, { ...filters, cursor: previous, ...position(at - limit) })}>Previous page</Link>
      )}
      {next !== null && <Link to={listAddress(path, { ...filters, cursor: next, ...position(at + shown) })}>Next page</Link>}
    </nav>
  );
}

/** Which items a page shows. The numbers are those of the moment in which the list was read. */
function Counted({ at, shown, total }: { readonly at: number; readonly shown: number; readonly total: number | undefined }) {
  if (shown === 0 || at === 0) return null;
  const last = numberText(at + shown - 1);
  const items = at === 1 && shown === 1 ? '1' : `${numberText(at)}–${last}`;
  return <p class="count">{total === undefined ? items : `${items} of ${numberText(Math.max(total, at + shown - 1))}`}</p>;
}

import type { ComponentChildren } from 'preact';
import { AsCommands, type Command } from './action-form.js';
import type { PageRequest } from './page-request.js';
import { useAddress, useView } from './view.js';

// The common parts of pages with a list: filters in the address, and links to other pages of the list. A list's page and its part with the
// items have the same name as its call: /audit shows #audit from /api/audit.

export interface ListResponse<T> {
  readonly data: readonly T[];
  readonly next_cursor: string | null;
}

export interface ListProps<T> {
  readonly list: ListResponse<T>;
  readonly filters: Readonly<Record<string, string>>;
}

/** Reads the page of a list that the address asks for, with the filters of these names. */
export async function readList<T>(
  { ask, query }: PageRequest,
  path: string,
  names: readonly string[],
  { limit, defaults }: { readonly limit: number; readonly defaults?: Readonly<Record<string, string>> },
): Promise<ListProps<T>> {
  const filters = { ...defaults, ...filtersOf(query, names) };
  const list = await ask<ListResponse<T>>(listAddress(`/api${path}`, { ...filters, ...filtersOf(query, ['cursor']), limit }));
  return { list, filters };
}

/** The parameters of the query that have one of these names and a value. */
export function filtersOf(query: URLSearchParams, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, query.get(name)?.trim() ?? '']).filter(([, value]) => value !== ''));
}

export function listAddress(path: string, filters: Readonly<Record<string, string | number>>): string {
  const query = new URLSearchParams(Object.entries(filters).map(([name, value]) => [name, String(value)])).toString();
  return query === '' ? path : `${path}?${query}`;
}

interface FiltersProps {
  readonly path: string;
  readonly children: ComponentChildren;
}

/** A form whose fields become the address. With scripts the list follows each change; without them, a button sends the form. */
export function Filters({ path, children }: FiltersProps) {
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

interface SearchProps {
  readonly label: string;
  readonly name: string;
  readonly value: string | undefined;
  readonly maxLength: number;
  readonly placeholder?: string;
  readonly pattern?: string;
}

export function Search({ label, ...input }: SearchProps) {
  return (
    <label>
      <span>{label}</span>
      <input type="search" {...input} />
    </label>
  );
}

export function ResourceSearch({ value }: Pick<SearchProps, 'value'>) {
  return <Search label="List" name="resource" value={value} maxLength={41} pattern="[a-z][a-z0-9_]*" placeholder="employees" />;
}

interface ChoiceProps {
  readonly name: string;
  readonly label: string;
  readonly chosen: string | undefined;
  /** The text of the option that chooses nothing. */
  readonly none?: string;
  readonly options: readonly (readonly [value: string, text: string])[];
}

export function Choice({ name, label, chosen = '', none = 'all', options }: ChoiceProps) {
  return (
    <label>
      <span>{label}</span>
      <select name={name}>
        <option value="">{none}</option>
        {options.map(([value, text]) => (
          <option key={value} value={value} selected={value === chosen}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

interface PagesProps {
  readonly path: string;
  readonly filters: Readonly<Record<string, string>>;
  readonly next: string | null;
}

export function Pages({ path, filters, next }: PagesProps) {
  const address = useAddress();
  const isFirst = new URLSearchParams(useView().address.split('?')[1]).get('cursor') === null;
  if (isFirst && next === null) return null;
  return (
    <nav class="pages" aria-label="Pages of the list">
      {!isFirst && <a href={address(listAddress(path, filters))}>First page</a>}
      {next !== null && <a href={address(listAddress(path, { ...filters, cursor: next }))}>Next page</a>}
    </nav>
  );
}

interface FoundListProps extends ListProps<unknown> {
  readonly path: string;
  readonly label: string;
  /** Further commands, after the call of the list. */
  readonly commands?: readonly Command[];
  readonly children: ComponentChildren;
}

/** The part of the page that follows the filters: the items, links to other pages of the list, and commands. */
export function FoundList({ path, label, list, filters, commands = [], children }: FoundListProps) {
  const call = { method: 'GET', path: listAddress(`/api${path}`, filters) } as const;
  return (
    <section id={path.slice(1)} aria-label={label}>
      {children}
      <Pages path={path} filters={filters} next={list.next_cursor} />
      <AsCommands commands={[{ label: 'This list', call }, ...commands]} />
    </section>
  );
}

export const ENVIRONMENT_CHOICES = [
  ['production', 'production'],
  ['test', 'test'],
] as const;

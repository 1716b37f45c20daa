import type { ComponentChildren } from 'preact';
import { useAddress, useView } from './view.js';

// What the pages that show a list have in common: filters in the address, and the way to the next page.

/** A page of a list, as the API answers it. */
export interface ListResponse<T> {
  readonly data: readonly T[];
  readonly next_cursor: string | null;
}

/** Those of the query's parameters that have a value and one of these names. */
export function filtersOf(query: URLSearchParams, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, query.get(name)?.trim() ?? '']).filter(([, value]) => value !== ''));
}

/** The address of a list with these filters. */
export function listAddress(path: string, filters: Readonly<Record<string, string | number>>): string {
  const query = new URLSearchParams(Object.entries(filters).map(([name, value]) => [name, String(value)])).toString();
  return query === '' ? path : `${path}?${query}`;
}

interface FiltersProps {
  readonly path: string;
  /** What the list that follows is called by its id. */
  readonly controls: string;
  readonly children: ComponentChildren;
}

/** A form whose fields become the address. With scripts the list follows each change; without, a button sends it. */
export function Filters({ path, controls, children }: FiltersProps) {
  const address = useAddress();
  return (
    <form
      class="filters"
      method="get"
      action={address(path)}
      role="search"
      hx-get={address(path)}
      hx-trigger="change, input delay:300ms, submit"
      hx-target={`#${controls}`}
      hx-select={`#${controls}`}
      hx-swap="outerHTML"
      hx-push-url="true"
    >
      {children}
      <button>Show</button>
    </form>
  );
}

interface ChoiceProps {
  readonly name: string;
  readonly label: string;
  readonly chosen: string | undefined;
  /** What it is called when nothing is chosen. */
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

export const ENVIRONMENT_CHOICES = [
  ['production', 'production'],
  ['test', 'test'],
] as const;

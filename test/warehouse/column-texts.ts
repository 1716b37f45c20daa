import type { Manifest } from '../../src/warehouse/export/export-resource.js';

export const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;
/** Every column as a text that both databases write alike. The driver of DuckDB loses the mark U+FEFF where it begins a text. */
export const asText = {
  postgres: ({ name, type, stored_as }: Manifest['columns'][number]) => {
    if (type === 'timestamptz' && stored_as !== 'STRING') return `(extract(epoch FROM ${quoted(name)}) * 1000000)::bigint::text`;
    if (type === 'date' && stored_as !== 'STRING') return `(${quoted(name)} - date '1970-01-01')::text`;
    const decimal = /^DECIMAL\(\d+,(\d+)\)$/.exec(stored_as ?? '');
    if (decimal) return `'.' || ${quoted(name)}::numeric(38, ${decimal[1]})::text`;
    return `'.' || ${quoted(name)}::text`;
  },
  duck: ({ name, type, stored_as }: Manifest['columns'][number]) => {
    if (type === 'timestamptz' && stored_as !== 'STRING') return `epoch_us(${quoted(name)})::VARCHAR`;
    if (type === 'date' && stored_as !== 'STRING') return `date_diff('day', DATE '1970-01-01', ${quoted(name)})::VARCHAR`;
    return `'.' || ${quoted(name)}::VARCHAR`;
  },
};

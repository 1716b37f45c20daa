import type { ComponentChildren } from 'preact';

export function Field({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  return (
    <label>
      <span>{label}</span>
      {children}
    </label>
  );
}

interface SelectProps {
  readonly label: string;
  readonly name: string;
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly chosen?: string | undefined;
}

export function Select({ label, name, options, chosen }: SelectProps) {
  return (
    <Field label={label}>
      <select name={name}>
        {options.map(([value, text]) => (
          <option key={value} value={value} selected={value === chosen}>
            {text}
          </option>
        ))}
      </select>
    </Field>
  );
}

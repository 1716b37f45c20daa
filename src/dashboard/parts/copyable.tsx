interface CopyableProps {
  readonly label: string;
  readonly value: string;
  /** The heading of the column is its visible label. */
  readonly isInTable?: boolean;
}

/** A text to copy. Without scripts a person selects and copies it by hand. */
export function Copyable({ label, value, isInTable = false }: CopyableProps) {
  return (
    <div class="copyable">
      <label>
        <span class={isInTable ? 'unseen' : undefined}>{label}</span>
        <input type="text" readOnly value={value} />
      </label>
      <button type="button" data-copy={value} aria-label={isInTable ? `Copy: ${label}` : undefined} hidden>
        Copy
      </button>
    </div>
  );
}

package projections

import (
	"strconv"
	"strings"

	"berth/aggregates"
)

// afterRetired begins a cursor that stands among the ended lifecycles; no
// boundary begins like it.
const afterRetired = "~"

// ended fills the page with ended lifecycles, newest first.
func (v *Views) ended(q Query, limit int, page *Page) {
	from := len(v.retired.rows) - 1
	if rest, ok := strings.CutPrefix(q.After, afterRetired); ok {
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 || n > from+1 {
			return
		}
		from = n - 1
	}
	for i := from; i >= 0; i-- {
		r := v.retiredRow(uint32(i))
		if !q.wants(r.Owner, r.Record.Provider) || !q.endedAs(r) {
			continue
		}
		if len(page.Items) == limit {
			page.Next = afterRetired + strconv.Itoa(i+1)
			return
		}
		page.Items = append(page.Items, r.Row())
	}
}

func (q Query) endedAs(r Retired) bool {
	switch q.Status {
	case "":
		return true
	case aggregates.StatusRetired:
		return !r.WrittenOff
	case aggregates.StatusWrittenOff:
		return r.WrittenOff
	}
	return false
}

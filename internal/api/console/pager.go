package console

import "strconv"

// rowsOfPage is how many rows a page of a long list has.
const rowsOfPage = 100

// pager is which rows of a list are shown: From up to, and without, To.
type pager struct {
	From, To, All int
	// Before and After lead to the other pages; empty: there are none.
	Before, After string
}

// pageOf is the page of a list of n rows that a request asks for.
func pageOf(v *visit, n int) pager {
	page, _ := strconv.Atoi(v.r.URL.Query().Get("page"))
	page = min(max(page, 0), max(n-1, 0)/rowsOfPage)
	p := pager{From: page * rowsOfPage, To: min(n, (page+1)*rowsOfPage), All: n}
	link := func(page int) string {
		query := v.r.URL.Query()
		query.Set("page", strconv.Itoa(page))
		query.Del("done")
		return v.r.URL.EscapedPath() + "?" + query.Encode()
	}
	if p.From > 0 {
		p.Before = link(page - 1)
	}
	if p.To < n {
		p.After = link(page + 1)
	}
	return p
}

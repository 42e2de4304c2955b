// The pause program: it needs no library, so that it builds wherever Go is.
module inquest.dev/images/pause

go 1.26.0

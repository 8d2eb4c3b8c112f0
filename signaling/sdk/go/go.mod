module github.com/windlass-sfu/windlass/signaling/sdk/go

go 1.19
